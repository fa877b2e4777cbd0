// Package cri is what the proxy knows of the Container Runtime Interface: the
// frame in which every message travels, the codec that carries frames, the
// shape of an interceptor, and the tables of methods.
//
// It opens no connection and serves none; that is package proxy. It does not
// say what a hook does to a message; that is package intercept.
package cri
