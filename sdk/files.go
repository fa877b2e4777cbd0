package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// CgroupFile is a file that [ReadCgroups] has read. Errno is 0, or why there is no text.
type CgroupFile struct {
	Text  string
	Errno Errno
}

// filesPerCall bounds what one call of the host reads, in files. It reads 1,024 at most.
const filesPerCall = 512

// ReadCgroups reads files of many containers, by their cgroup v2 names, with few calls of the
// host: the result has a row for each container, with the files in their order. Where they are too
// large for one call, it reads fewer containers at once. It needs [CapCgroupRead].
func ReadCgroups(of []FoundContainer, files ...string) ([][]CgroupFile, error) {
	rows := make([][]CgroupFile, 0, len(of))
	list := string(abi.AppendList(nil, files))
	for step := max(filesPerCall/max(len(files), 1), 1); len(of) > 0; {
		n := min(step, len(of))
		read, result := readCgroups(of[:n], list)
		if result == int32(ErrTooLarge) && n > 1 {
			step = n / 2
			continue
		}
		if err := check("ReadCgroups", "", result); err != nil {
			return nil, err
		}
		if len(read) < n*len(files) { // a host that breaks its word
			return rows, nil
		}
		for ; n > 0; n-- {
			rows = append(rows, read[:len(files):len(files)])
			read, of = read[len(files):], of[1:]
		}
	}
	return rows, nil
}

// readCgroups returns what the host has answered, besides.
func readCgroups(of []FoundContainer, files string) (read []CgroupFile, result int32) {
	objects := make([]byte, 0, 4*len(of))
	for _, c := range of {
		o := uint32(c.object())
		objects = append(objects, byte(o), byte(o>>8), byte(o>>16), byte(o>>24))
	}
	text := string(objects)
	n := hostCgroupRead(text, files, free, room)
	for ; n > room; n = hostCgroupRead(text, files, free, room) {
		refill(n)
	}
	if n < 0 {
		return nil, n
	}
	read = make([]CgroupFile, 0, len(of))
	abi.EachEntry(cut(n), func(errno, text string) bool {
		number, _ := ParseInt(errno)
		read = append(read, CgroupFile{text, Errno(number)})
		return true
	})
	return read, n
}
