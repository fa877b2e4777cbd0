package abi

// This file holds the encodings of what does not fit into a number or a text. All
// numbers are little endian and not aligned. Decoders trust nothing: host and
// guest read with them what the other one wrote.

// AppendText appends a text with its length: u32 len, bytes.
func AppendText(b []byte, text string) []byte {
	return append(appendU32(b, uint32(len(text))), text...)
}

// AppendEntries appends a map, as map_dump gives it, or a record: u32 count, then
// key and value of each entry as AppendText writes them.
func AppendEntries(b []byte, entries func(yield func(key, value string) bool)) []byte {
	at, count := len(b), uint32(0)
	b = append(b, 0, 0, 0, 0)
	entries(func(key, value string) bool {
		b = AppendText(AppendText(b, key), value)
		count++
		return true
	})
	putU32(b[at:], count)
	return b
}

// AppendList appends a list, as list_dump gives it: u32 count, then each element
// as AppendText writes it.
func AppendList(b []byte, list []string) []byte {
	b = appendU32(b, uint32(len(list)))
	for _, element := range list {
		b = AppendText(b, element)
	}
	return b
}

// AppendRecord appends an element of a set of records: the entries of its keys, in
// that order, without those that are empty.
func AppendRecord(b []byte, keys []string, value func(key string) string) []byte {
	return AppendEntries(b, func(yield func(key, value string) bool) {
		for _, key := range keys {
			if v := value(key); v != "" && !yield(key, v) {
				return
			}
		}
	})
}

// EachEntry goes through what AppendEntries wrote until yield returns false. It
// reports whether all that it looked at was in order.
func EachEntry[T ~string | ~[]byte](b T, yield func(key, value T) bool) bool {
	count, b, ok := cutU32(b)
	for ; ok && count > 0; count-- {
		var key, value T
		if key, b, ok = cutText(b); !ok {
			return false
		}
		if value, b, ok = cutText(b); ok && !yield(key, value) {
			return true
		}
	}
	return ok && len(b) == 0
}

// EachElement goes through what AppendList wrote, as EachEntry does.
func EachElement[T ~string | ~[]byte](b T, yield func(element T) bool) bool {
	count, b, ok := cutU32(b)
	for ; ok && count > 0; count-- {
		var element T
		if element, b, ok = cutText(b); ok && !yield(element) {
			return true
		}
	}
	return ok && len(b) == 0
}

func cutText[T ~string | ~[]byte](b T) (text, rest T, ok bool) {
	n, rest, ok := cutU32(b)
	if !ok || uint64(n) > uint64(len(rest)) {
		return text, rest, false
	}
	return rest[:n], rest[n:], true
}

func cutU32[T ~string | ~[]byte](b T) (uint32, T, bool) {
	if len(b) < 4 {
		return 0, b, false
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24, b[4:], true
}

func putU32(b []byte, v uint32) {
	_ = b[3] // one check of the bounds
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func appendU32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}
