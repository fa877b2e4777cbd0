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
		bytes := make([]byte, 0, 4*n)
		for _, c := range of[:n] {
			o := uint32(c.object())
			bytes = append(bytes, byte(o), byte(o>>8), byte(o>>16), byte(o>>24))
		}
		objects := string(bytes)
		size := hostCgroupRead(objects, list, free, room)
		for ; size > room; size = hostCgroupRead(objects, list, free, room) {
			refill(size)
		}
		if size == int32(ErrTooLarge) && n > 1 {
			step = n / 2
			continue
		}
		if err := check("ReadCgroups", "", size); err != nil {
			return nil, err
		}

		read := make([]CgroupFile, 0, n*len(files))
		abi.EachEntry(cut(size), func(errno, text string) bool {
			number, _ := ParseInt(errno)
			read = append(read, CgroupFile{text, Errno(number)})
			return true
		})
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
