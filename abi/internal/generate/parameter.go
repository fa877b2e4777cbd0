package main

import "github.com/wasmproxy/wasmproxy/abi"

// shape says what a parameter means to languages that have more than numbers.
type shape string

const (
	plain  shape = "plain"  // a number
	text   shape = "text"   // a pointer and a length, which the host reads
	buffer shape = "buffer" // a pointer and a length, which the host writes
	number shape = "number" // a pointer to 8 bytes, which the host writes
)

// argument is a parameter of a host function, or a pair of them.
type argument struct {
	abi.Param
	Shape  shape
	Length string // the name of the length
}

// arguments joins pointers and lengths: x with x_len, buf with cap or len.
func arguments(f abi.Function) []argument {
	var list []argument
	for i := 0; i < len(f.Params); i++ {
		a := argument{Param: f.Params[i], Shape: plain}
		next := ""
		if i+1 < len(f.Params) {
			next = f.Params[i+1].Name
		}
		switch {
		case a.Name == "buf":
			a.Shape, a.Length = buffer, next
			i++
		case next == a.Name+"_len":
			a.Shape, a.Length = text, next
			i++
		case a.Name == "out":
			a.Shape = number
		}
		list = append(list, a)
	}
	return list
}
