// Command wasmproxy stands between kubelet and the container runtime, and lets
// plugins change what kubelet asks for. The program is flags in and exit code
// out; what it does is in the packages under runtime.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/host"
)

func main() {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	os.Exit(run(ctx, newRoot(host.SettingsFile), commandLine(os.Args), os.Stdout, os.Stderr))
}

// outliveReader has the process go on without whoever reads its stdout or stderr, such as a session of ssh that breaks off.
// Otherwise the next write would end it, also where its parent has set that the signal is ignored.
func outliveReader() { signal.Ignore(syscall.SIGPIPE) }
