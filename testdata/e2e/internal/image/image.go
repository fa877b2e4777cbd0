// Package image makes the container images of the tests from Debian's static
// busybox and bash and one small program, and serves them from a registry on
// loopback under the names that kubelet and critest ask for. No upstream image
// is needed and no network.
package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// These are the names of the images that the tests ask for themselves. A user may write Short without docker.io/library.
const (
	Pause   = "registry.k8s.io/pause:3.9"
	Busybox = "registry.k8s.io/e2e-test-images/busybox:1.29-2"
	Nginx   = "registry.k8s.io/e2e-test-images/nginx:1.14-2"
	Short   = "docker.io/library/short:1"
)

// Debian's static programs. Its busybox is not used as the shell: that one runs
// its own applets without exec, whatever PATH says.
const (
	busyboxFile = "/bin/busybox"
	bashFile    = "/bin/bash-static"
)

// parts are the layers that images are made of.
type parts struct {
	base                     v1.Layer // root file system with a shell and busybox's applets
	groups                   v1.Layer // a user with a group defined in the image
	nginx, httpd, nonewprivs v1.Layer // multicall under these names
	pause                    v1.Layer
	agnhost                  v1.Layer // nil without the program
}

// newParts makes the layers of the static programs multicall and pause, which lie in bin, and of agnhost, which some runs have.
func newParts(bin string) (parts, error) {
	program, err := os.ReadFile(filepath.Join(bin, "multicall"))
	if err != nil {
		return parts{}, fmt.Errorf("reading the program of the images: %w", err)
	}
	pause, err := os.ReadFile(filepath.Join(bin, "pause"))
	if err != nil {
		return parts{}, fmt.Errorf("reading the program of the pause images: %w", err)
	}
	base, err := baseEntries(program)
	if err != nil {
		return parts{}, err
	}
	var p parts
	for _, l := range []struct {
		layer   *v1.Layer
		entries []entry
	}{
		{&p.base, base},
		{&p.groups, groupEntries()},
		{&p.pause, []entry{file("pause", 0o755, pause)}},
		{&p.nginx, []entry{file("usr/sbin/nginx", 0o755, program)}},
		{&p.httpd, []entry{directory("usr/local", 0o755), directory("usr/local/bin", 0o755), file("usr/local/bin/httpd", 0o755, program)}},
		{&p.nonewprivs, []entry{file("nonewprivs", 0o4755, program)}},
	} {
		if *l.layer, err = layer(l.entries...); err != nil {
			return parts{}, err
		}
	}
	p.agnhost, err = agnhostLayer(filepath.Join(bin, "agnhost"))
	return p, err
}

// curl is the image agnhost's, as far as specs of e2e_node call it: with the URL as the last argument.
const curl = "#!/bin/bash\nexec wget -q -O - \"${!#}\"\n"

// agnhostLayer has the program under both names that specs call it by, and curl.
func agnhostLayer(path string) (v1.Layer, error) {
	program, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the program of the image agnhost: %w", err)
	}
	return layer(file("agnhost", 0o755, program), hardLink("agnhost-2", "agnhost"), file("usr/bin/curl", 0o755, []byte(curl)))
}

const (
	rootUser   = "root:x:0:0:root:/root:/bin/sh\n"
	webUser    = "www-data:x:33:33:www-data:/var/www:/bin/false\n"
	rootGroup  = "root:x:0:\n"
	webGroup   = "www-data:x:33:\n"
	otherUsers = "daemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
)

func baseEntries(program []byte) ([]entry, error) {
	var entries []entry
	for _, d := range []string{"bin", "sbin", "usr", "usr/bin", "usr/sbin", "etc", "home", "var", "var/run", "var/www", "mnt", "dev"} {
		entries = append(entries, directory(d, 0o755))
	}
	entries = append(entries,
		directory("root", 0o700), directory("tmp", 0o1777), directory("proc", 0o555), directory("sys", 0o555),
		file("etc/passwd", 0o644, []byte(rootUser+webUser+otherUsers)),
		file("etc/group", 0o644, []byte(rootGroup+webGroup+"daemon:x:1:\nnogroup:x:65534:\n")),
		file("usr/bin/multicall", 0o755, program),
		hardLink("usr/bin/pgrep", "usr/bin/multicall"),
		hardLink("usr/bin/ipcs", "usr/bin/multicall"),
		hardLink("usr/bin/nmeter", "usr/bin/multicall"),
	)
	shell, err := os.ReadFile(bashFile)
	if err != nil {
		return nil, fmt.Errorf("reading the shell of the images: %w", err)
	}
	applets, err := busyboxEntries()
	if err != nil {
		return nil, err
	}
	entries = append(entries, file("bin/bash", 0o755, shell), hardLink("bin/sh", "bin/bash"))
	return append(entries, applets...), nil
}

// busyboxEntries are busybox and a link for each applet. Hard links: a test
// masks one of them, and a symbolic link would mask busybox itself.
func busyboxEntries() ([]entry, error) {
	program, err := os.ReadFile(busyboxFile)
	if err != nil {
		return nil, fmt.Errorf("reading busybox for the images: %w", err)
	}
	list, err := exec.Command(busyboxFile, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing busybox's applets: %w", err)
	}
	entries := []entry{file("bin/busybox", 0o755, program)}
	for _, applet := range slices.Sorted(strings.FieldsSeq(string(list))) {
		if !slices.Contains([]string{"sh", "bash", "busybox", "httpd"}, applet) {
			entries = append(entries, hardLink("bin/"+applet, "bin/busybox"))
		}
	}
	return entries, nil
}

// groupEntries replace the users and groups by those that critest's tests of supplemental groups expect.
func groupEntries() []entry {
	return []entry{
		file("etc/passwd", 0o644, []byte(rootUser+webUser+"default-user:x:1000:1000::/home/default-user:/bin/sh\n")),
		file("etc/group", 0o644, []byte(rootGroup+webGroup+"default-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n")),
		ownedBy(1000, directory("home/default-user", 0o755)),
	}
}
