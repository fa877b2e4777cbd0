// Command generate writes what follows from the tables of package abi: the tables
// and signatures in the pages of the specification, the constants and declarations of sdk/c/wasmproxy.h,
// sdk/rust/src/abi.rs, the Go SDK's imports, getters and setters of both SDKs, the table of cgroup files in
// the README of each SDK, and wp1.json, which has all tables for generators of other languages. Run it with make generate.
// Each file but that has a template of its name beside this source.
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
	"slices"
)

const (
	frozenPath = "abi/testdata/wp1.txt"
	jsonPath   = "abi/wp1.json"
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
	paths := append(slices.Clone(pages), jsonPath,
		"sdk/c/wasmproxy.h", "sdk/rust/src/abi.rs", "sdk/rust/src/getter.rs",
		"sdk/README.md", "sdk/rust/README.md", "sdk/c/README.md", "sdk/import.go", "sdk/register.go", "sdk/capability.go", "sdk/getter.go",
	)
	if freeze {
		paths = append(paths, frozenPath)
	}
	g, err := newGenerator(root)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, path := range paths {
		if texts[path], err = g.file(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range paths {
		if !check {
			if err := os.WriteFile(filepath.Join(root, path), texts[path], 0o644); err != nil {
				return err
			}
			continue
		}
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		if !bytes.Equal(have, texts[path]) {
			return fmt.Errorf("%s is not what the tables of package abi make; run: make generate", path)
		}
	}
	return nil
}
