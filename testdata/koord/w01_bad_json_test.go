package koord_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestW01BadJSON drops bad files into hookserver.d of a running proxy, beside a
// good one, and has a pod run. koord-runtime-proxy keeps an entry without
// content for a file that it cannot read, and panics over it at the next call.
func TestW01BadJSON(t *testing.T) {
	all := map[string]scenario{}
	for name, content := range map[string]string{
		"empty": "", "truncated": `{"remote-endpoint": "/run/a.so`, "not JSON": "endpoint=/run/a.sock\n", "binary": "\x00\xff\xfe",
		"array": `[]`, "string": `"koordlet"`, "number": `7`, "hooks are a string": `{"runtime-hooks": "PreRunPodSandbox"}`,
		"endpoint is a number": `{"remote-endpoint": 7, "runtime-hooks": ["PreRunPodSandbox"]}`,
		"two values":           `{}{}`,
		"trailing comma":       `{"runtime-hooks": ["PreRunPodSandbox"],}`,
		"deep":                 strings.Repeat(`{"a":`, 100_000),
	} {
		all[name] = scenario{run: badFile(content), incumbent: "proxy has ended: panic: .*nil pointer"}
	}
	all["written in place"] = scenario{run: rewrittenFile, incumbent: "proxy has ended: panic: .*nil pointer"}
	tests(t, all)
}

func badFile(content string) func(*node) error {
	return func(n *node) error {
		good := n.serve("20-good.json", nil, "Ignore", "PreRunPodSandbox")
		n.start()
		n.register("10-bad.json", content)
		for range 30 { // until it must have been seen
			if _, err := n.runPod(podConfig()); n.well(err) != nil {
				return n.well(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if told := len(good.toldOf("PreRunPodSandbox")); told != 30 {
			return fmt.Errorf("the good server was told of %d pods of 30", told)
		}
		return nil
	}
}

// rewrittenFile rewrites a registration in place, as koordlet does at its start, while pods run.
func rewrittenFile(n *node) error {
	good := n.serve("10-good.json", nil, "Ignore", "PreRunPodSandbox")
	n.start()
	content := registration(good.socket, "Ignore", "PreRunPodSandbox")
	stop := time.Now().Add(3 * time.Second)
	done := make(chan error)
	go func() {
		var err error
		for err == nil && time.Now().Before(stop) {
			file := filepath.Join(n.hookDir, "20-again.json") // another name than that of the good one, which must go on
			os.Remove(file)
			err = writeSlowly(file, content)
		}
		done <- err
	}()
	pods := 0
	for ; time.Now().Before(stop); pods++ {
		if _, err := n.runPod(podConfig()); n.well(err) != nil {
			<-done
			return n.well(err)
		}
	}
	n.must(<-done)
	if told := len(good.toldOf("PreRunPodSandbox")); told < pods {
		return fmt.Errorf("the server was told of %d pods of %d", told, pods)
	}
	return nil
}

// writeSlowly writes as os.WriteFile does on a machine with much to do.
func writeSlowly(file, content string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, part := range []string{content[:20], content[20:]} {
		time.Sleep(5 * time.Millisecond)
		if _, err := f.WriteString(part); err != nil {
			return err
		}
	}
	return nil
}
