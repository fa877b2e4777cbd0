package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// write prints the result as a table, and records it with what it was measured on.
func write(ctx context.Context, o *options, r *result) error {
	var table strings.Builder
	if err := r.table(&table); err != nil {
		return err
	}
	fmt.Print("\n", table.String(), "\n")
	file, err := os.Create(o.results())
	if err != nil {
		return err
	}
	defer file.Close()
	header(ctx, o, file)
	fmt.Fprintf(file, "\n# %s\n", strings.ReplaceAll(strings.TrimSpace(table.String()), "\n", "\n# "))
	r.benchfmt(file)
	return file.Close()
}

// header writes the configuration lines of Go's benchmark format.
func header(ctx context.Context, o *options, w io.Writer) {
	commit, _ := exec.CommandContext(ctx, "git", "-C", o.root, "describe", "--always", "--dirty").Output()
	for _, line := range [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", "github.com/wasmproxy/wasmproxy/testdata/bench"},
		{"cpu", procField("/proc/cpuinfo", "model name")}, {"cpus", fmt.Sprint(runtime.NumCPU())}, {"memory", procField("/proc/meminfo", "MemTotal")},
		{"go", runtime.Version()}, {"commit", strings.TrimSpace(string(commit))}, {"date", time.Now().UTC().Format(time.DateOnly)},
	} {
		fmt.Fprintf(w, "%s: %s\n", line[0], line[1])
	}
}

// procField returns the first value of a key in a file of `key : value` lines, or "unknown".
func procField(path, key string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
