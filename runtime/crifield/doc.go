// Package crifield is the table of what plugins read and change: for each field of
// package abi the place in CRI's messages where its value is.
//
// It decides nothing: who may change a field, in which hook and to which values is
// checked in package plugin before a change comes here.
package crifield
