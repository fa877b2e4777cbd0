// Command nri-host is a second host of the plugin ABI wp1, written from abi/ABI.md and the tables of package abi: an NRI plugin that
// runs modules for wasmproxy in a containerd without wasmproxy. It serves the core, and of
// cgroup_set two files if the operator chooses the hooks of guests. It shows that others can write a host, and is not
// meant for use: it has no matches, no failure policy, and each call makes an instance anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	conformance := flag.Bool("conformance", false, "take tests of wasmproxy abi test from stdin")
	socket := flag.String("socket", "", "NRI's socket; that of the system if empty")
	hooks := flag.String("hooks", "", "hooks that guests keep, with commas between; functions that this host lacks answer UNSUPPORTED then")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: nri-host --conformance | nri-host [--socket PATH] [--hooks HOOK,...] MODULE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if *conformance {
		err = serveTests(ctx, os.Stdin, os.Stdout)
	} else {
		err = serveNRI(ctx, *socket, strings.FieldsFunc(*hooks, func(r rune) bool { return r == ',' }), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nri-host:", err)
		os.Exit(1)
	}
}
