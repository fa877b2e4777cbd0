// Package oracle holds the SDK's library for authors to what it is modelled on: its image references to
// github.com/distribution/reference, and its quantities to k8s.io/apimachinery. It has tests alone, and is in this module
// because the SDK's own imports the standard library alone.
package oracle
