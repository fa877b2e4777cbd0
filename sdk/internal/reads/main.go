// Command reads is a plugin that reads as much of a pod as its configuration says,
// for BenchmarkReads of runtime/intercept: "n after", n reads, of which those after the first so
// many use the pod's view.
package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/internal/tune"
)

func main() {} // never runs

func init() {
	wp.Plugin("reads", "1.0.0").OnConfigure(configure).OnPostRunPodSandbox(read)
}

var reads int

func configure(config string) error {
	var numbers []int
	n := 0
	for i := 1; i < len(config)-1; i++ { // between the quotes
		if config[i] == ' ' {
			numbers, n = append(numbers, n), 0
			continue
		}
		n = 10*n + int(config[i]-'0')
	}
	numbers = append(numbers, n)
	if len(numbers) != 2 {
		return wp.Failure("want two numbers")
	}
	reads, tune.ViewAfter = numbers[0], numbers[1]
	return nil
}

// read reads names and numbers in turns.
func read(p *wp.PostRunPodSandbox) error {
	length := 0
	for i := range reads {
		switch i % 8 {
		case 0:
			length += len(p.Namespace())
		case 1:
			length += int(p.Resources().CPUQuota())
		case 2:
			length += len(p.Name())
		case 3:
			length += int(p.Resources().MemoryLimit())
		case 4:
			length += len(p.QoS())
		case 5:
			length += int(p.Resources().CPUPeriod())
		case 6:
			length += len(p.CgroupParent())
		case 7:
			length += int(p.Overhead().MemoryLimit())
		}
	}
	if length == 1 {
		return wp.Failure("never so, but nothing above may be left out")
	}
	return nil
}
