// Package admin answers questions about the running proxy, as HTTP with JSON on a unix socket that
// only the proxy's own user can open, and questions that change nothing on a second one. It has a handler for each resource, and a client for the
// commands of the program. An answer has no environment variable and no other secret.
package admin
