// Command sbom writes an SPDX document of a Go program: the modules that the program itself
// says it was built from.
//
//	sbom VERSION PROGRAM >PROGRAM.spdx.json
//
// Two runs give the same bytes: the document's time is SOURCE_DATE_EPOCH, and its name has
// the checksum of the program.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: sbom VERSION PROGRAM")
	}
	version, program := args[0], args[1]
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	created := time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	return json.Write(document(info, filepath.Base(program), version, sum, created), w, json.Indent("  "))
}

func document(info *buildinfo.BuildInfo, name, version, sum, created string) *spdx.Document {
	info.Main.Version = version
	main := packageOf(0, &info.Main)
	main.PackageLicenseDeclared = "Apache-2.0"
	main.PackageFileName = name
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + sum,
		CreationInfo:      &spdx.CreationInfo{Created: created, Creators: []common.Creator{{CreatorType: "Tool", Creator: "wasmproxy-sbom"}}},
		Packages:          []*spdx.Package{main},
		Relationships:     []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, main)},
	}
	modules := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		switch {
		case m.Replace == nil:
		case strings.HasPrefix(m.Replace.Path, "."): // a module of this checkout
			m = &debug.Module{Path: m.Path, Version: version}
		default:
			m = m.Replace
		}
		modules = append(modules, m)
	}
	for i, m := range modules {
		p := packageOf(i+1, m)
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relation(main.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, p))
	}
	return d
}

func packageOf(number int, m *debug.Module) *spdx.Package {
	const unknown = "NOASSERTION"
	return &spdx.Package{
		PackageName: m.Path, PackageVersion: m.Version, PackageSPDXIdentifier: common.ElementID(fmt.Sprintf("Package-%d", number)),
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + m.Path + "@" + m.Version,
		}},
	}
}

func relation(from common.ElementID, kind string, to *spdx.Package) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to.PackageSPDXIdentifier},
	}
}
