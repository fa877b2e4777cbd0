package main

import "github.com/wasmproxy/wasmproxy/abi"

// shape says what a parameter means to languages that have more than numbers.
type shape int

const (
	plain  shape = iota // a number
	text                // a pointer and a length, which the host reads
	buffer              // a pointer and a length, which the host writes
	number              // a pointer to 8 bytes, which the host writes
)

// argument is a parameter of a host function, or a pair of them.
type argument struct {
	abi.Param
	shape  shape
	length string // the name of the length
}

// arguments joins pointers and lengths: x with x_len, buf with cap or len.
func arguments(f abi.Function) []argument {
	var list []argument
	for i := 0; i < len(f.Params); i++ {
		a := argument{Param: f.Params[i]}
		next := ""
		if i+1 < len(f.Params) {
			next = f.Params[i+1].Name
		}
		switch {
		case a.Name == "buf":
			a.shape, a.length = buffer, next
			i++
		case next == a.Name+"_len":
			a.shape, a.length = text, next
			i++
		case a.Name == "out":
			a.shape = number
		}
		list = append(list, a)
	}
	return list
}
