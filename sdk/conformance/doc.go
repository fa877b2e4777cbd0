// Package conformance reads the vectors of testdata/abi, which say what the ABI
// answers to each call of a host function, and turns them into fixtures for one
// program that is there in every language. testdata/abi/README.md describes both.
//
// It is also the kit that tests a host of any make: a command that is told one test a
// line and answers one outcome a line, as abi/CONFORMANCE.md says. The tests are the
// same vectors, divided by the groups of the ABI that they need, and modules that a host
// has to load, refuse or end.
//
// Its tests play the vectors to that program in the proxy's engine, hold them to the
// tables of package abi, and show that each can fail. The package runs no module itself.
package conformance
