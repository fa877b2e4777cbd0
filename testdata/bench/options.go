package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// options are what the command line says.
type options struct {
	root   string // of the repository
	cache  string // for what is built
	name   string // of the results
	rounds int
	full   int            // containers that each pod has before the benchmarks
	only   *regexp.Regexp // benchmarks to run
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "../..", "the repository")
	flags.StringVar(&o.cache, "cache", os.Getenv("WASMPROXY_CACHE"), "directory for built programs (default $WASMPROXY_CACHE, else .cache in the repository)")
	flags.StringVar(&o.name, "name", fmt.Sprintf("%s-%s-%dcpu", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), "name of the file of results")
	flags.IntVar(&o.rounds, "rounds", 30, "rounds of each benchmark")
	flags.IntVar(&o.full, "containers", 0, "containers that each of the two pods has, beside those that are measured")
	only := flags.String("bench", ".", "run the benchmarks that match this regular expression")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || o.rounds < 1 {
		return nil, fmt.Errorf("want flags only, and at least one round; got %q", args)
	}
	return o, o.resolve(*only)
}

func (o *options) resolve(only string) (err error) {
	if o.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("flag -bench: %w", err)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	if o.cache == "" {
		o.cache = filepath.Join(o.root, ".cache")
	}
	o.cache = filepath.Join(o.cache, "bench")
	return os.MkdirAll(o.cache, 0o755)
}

// results is the path of the file that a run writes.
func (o *options) results() string {
	return filepath.Join(o.root, "testdata", "bench", "results", o.name+".txt")
}
