package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile is in bytes: a hundred times what a file with every setting has.
const maxFile = 1 << 20

// readFile reads a regular file. A FIFO is not waited for, and a device is not read.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, err
}
