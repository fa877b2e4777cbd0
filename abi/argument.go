package abi

// Shape says what an argument means to languages that have more than numbers.
type Shape string

// The shapes of arguments.
const (
	Plain  Shape = "plain"  // a number
	Text   Shape = "text"   // a pointer and a length, which the host reads
	Buffer Shape = "buffer" // a pointer and a length, which the host writes
	Number Shape = "number" // a pointer to 8 bytes, which the host writes
)

// Argument is a parameter of a host function, or a pair of them.
type Argument struct {
	Param
	At     int // its place among the parameters
	Shape  Shape
	Length string // the name of the length, which is the parameter after it
}

// Arguments joins pointers and lengths: x with x_len, buf with cap or len.
func (f *Function) Arguments() (list []Argument) {
	for i := 0; i < len(f.Params); i++ {
		a := Argument{Param: f.Params[i], At: i, Shape: Plain}
		next := ""
		if i+1 < len(f.Params) {
			next = f.Params[i+1].Name
		}
		switch {
		case a.Name == "buf":
			a.Shape, a.Length = Buffer, next
			i++
		case next == a.Name+"_len":
			a.Shape, a.Length = Text, next
			i++
		case a.Name == "out":
			a.Shape = Number
		}
		list = append(list, a)
	}
	return list
}
