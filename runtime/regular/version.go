package regular

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// ReadState reads a file of wasmproxy's own, JSON of at most limit bytes with this number as version, which nobody but this
// process's user can read or write.
func ReadState(path string, limit int64, version int, into any) error {
	text, err := Read(path, limit, func(info fs.FileInfo) error { return Own(info, 0o077) })
	if err != nil {
		return err
	}
	var of struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	if of.Version != version {
		return AnotherVersion(of.Version, version)
	}
	return json.Unmarshal(text, into)
}

// AnotherVersion is why a file of wasmproxy's own is not read.
func AnotherVersion(has, read int) error {
	return fmt.Errorf("its version is %d, and this version of wasmproxy reads %d", has, read)
}
