package regular

import "fmt"

// AnotherVersion is why a file of wasmproxy's own is not read.
func AnotherVersion(has, read int) error {
	return fmt.Errorf("its version is %d, and this version of wasmproxy reads %d", has, read)
}
