// Command multicall is what the test images run where Debian's busybox has no
// applet for it. It acts by the name that it is called with, as busybox does.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

var applets = map[string]func() error{
	"nginx":      nginx,
	"httpd":      func() error { return serve("httpd") },
	"nonewprivs": printEffectiveUser,
	"pgrep":      pgrep,
	"ipcs":       ipcs,
	"nmeter":     timeOfDay,
}

func main() {
	name := filepath.Base(os.Args[0])
	if os.Args[0] == nginxTitle {
		name = "nginx"
	}
	applet, ok := applets[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "multicall: no applet %q\n", name)
		os.Exit(127)
	}
	if err := applet(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// timeOfDay is busybox's `nmeter -d0 '%3t' | head -n1`: specs of e2e_node write logs with it.
func timeOfDay() error {
	_, err := fmt.Println(time.Now().UTC().Format("15:04:05.000"))
	return err
}

// printEffectiveUser is the program of the nonewprivs image, in which it is set-uid root.
func printEffectiveUser() error {
	_, err := fmt.Printf("Effective uid: %d\n", os.Geteuid())
	return err
}
