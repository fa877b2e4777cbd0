// Command generate writes what follows from the tables of package abi: the tables
// and signatures in ABI.md, the constants and declarations of sdk/c/wasmproxy.h,
// sdk/rust/src/abi.rs, the Go SDK's imports, and getters of both SDKs. Run it with make generate.
//
// With -check it writes nothing, and fails if a file is not what it would write.
// With -freeze it also writes testdata/wp1.txt, against which the tables may only
// grow from then on.
//
// It is no part of what plugins or the proxy are built of.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "the top of the repository; go generate runs in abi")
	check := flag.Bool("check", false, "compare instead of writing")
	freeze := flag.Bool("freeze", false, "write the frozen tables too")
	flag.Parse()
	if err := run(*root, *check, *freeze); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string, check, freeze bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	if freeze {
		files = append(files, file{frozenPath, []byte(frozenHeader + dump())})
	}
	for _, f := range files {
		path := filepath.Join(root, f.path)
		if check {
			err = f.compare(path)
		} else {
			err = os.WriteFile(path, f.text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file is one that is generated, wholly or in parts.
type file struct {
	path string // from the top of the repository
	text []byte
}

func (f file) compare(path string) error {
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, f.text) {
		return fmt.Errorf("%s is not what the tables of package abi make; run: make generate", f.path)
	}
	return nil
}

// generate returns every generated file. Those that are generated in parts are
// read for what is around the parts.
func generate(root string) ([]file, error) {
	c, err := constants(filepath.Join(root, "abi"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, write := range []func(root string, c *constantSet) (file, error){
		specification, header, rust, goImports, goRegister, goCapabilities, goGetters, rustGetters,
	} {
		f, err := write(root, c)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
