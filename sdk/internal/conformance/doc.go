// Package conformance reads the vectors of testdata/abi, which say what the ABI
// answers to each call of a host function, and turns them into fixtures for one
// program that is there in every language. testdata/abi/README.md describes both.
//
// Its tests play the vectors to that program in the proxy's engine, hold them to the
// tables of package abi, and show that each can fail.
package conformance
