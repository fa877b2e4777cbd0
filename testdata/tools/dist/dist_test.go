// Package dist tests what `make dist` makes. `make dist-check` runs it: it takes two builds.
package dist

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const project, version = "../../..", "1.2.3-rc.1"

// build runs dist.sh of a checkout, or of a copy of one, and returns its directory.
func build(t *testing.T, checkout string, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), filepath.Join(checkout, "deploy/packages/dist.sh"))
	cmd.Env = append(os.Environ(), append(env, "OUT="+out, "ARCHES="+runtime.GOARCH, "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("dist.sh: %v\n%s", err, text)
	}
	return out
}

// read returns the files of a directory by their names.
func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestDist builds twice: in the checkout, and in a copy in another directory, without git, at
// another place on the clock's map and with another umask.
func TestDist(t *testing.T) {
	first := build(t, project)
	files := read(t, first)
	t.Run("Reproducible", func(t *testing.T) { reproducible(t, files) })
	t.Run("Checksums", func(t *testing.T) { checksums(t, files) })
	t.Run("Program", func(t *testing.T) { program(t, filepath.Join(first, "wasmproxy-linux-"+runtime.GOARCH)) })
	t.Run("SBOM", func(t *testing.T) {
		sbom(t, string(files["wasmproxy-linux-"+runtime.GOARCH+".spdx.json"]), files["wasmproxy-linux-"+runtime.GOARCH])
	})
	t.Run("FleetSBOM", func(t *testing.T) {
		document := string(files["wasmproxy-fleet-linux-"+runtime.GOARCH+".spdx.json"])
		for _, want := range []string{`"pkg:golang/github.com/wasmproxy/wasmproxy/fleet@v` + version + `"`, `"pkg:golang/github.com/wasmproxy/wasmproxy@v` + version + `"`,
			`"pkg:golang/k8s.io/client-go@v0.`} {
			if !strings.Contains(document, want) {
				t.Errorf("the document lacks %s", want)
			}
		}
	})
	t.Run("Image", func(t *testing.T) {
		image(t, filepath.Join(first, "wasmproxy-image.tar"), files["wasmproxy-linux-"+runtime.GOARCH+".spdx.json"])
	})
	t.Run("Manifests", func(t *testing.T) { kustomization(t, filepath.Join(first, "wasmproxy-kustomize.tar.gz")) })
	t.Run("Chart", func(t *testing.T) { chart(t, filepath.Join(first, "wasmproxy-helm.tgz")) })
	debian := filepath.Join(first, "wasmproxy_1.2.3~rc.1_"+runtime.GOARCH+".deb")
	t.Run("Deb", func(t *testing.T) { deb(t, debian) })
	t.Run("Purge", func(t *testing.T) { purge(t, debian) })
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if rpm := files["wasmproxy-1.2.3~rc.1-1."+arch+".rpm"]; !bytes.HasPrefix(rpm, []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Errorf("there is no rpm, or it is none: %d bytes", len(rpm))
	}
}

func reproducible(t *testing.T, files map[string][]byte) {
	copied := filepath.Join(t.TempDir(), "elsewhere")
	script := `mkdir "$1" && git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - | tar -C "$1" -xf -`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", copied)
	cmd.Dir = project
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copying the checkout: %v\n%s", err, text)
	}
	again := read(t, build(t, copied, "TZ=Asia/Tokyo", "LANG=C.UTF-8", "USER=somebody"))
	for name, content := range files {
		if !bytes.Equal(again[name], content) {
			t.Errorf("%s differs: %d and %d bytes", name, len(content), len(again[name]))
		}
	}
	if len(again) != len(files) || len(files) != 16 {
		t.Errorf("the builds have %d and %d files", len(files), len(again))
	}
}

func checksums(t *testing.T, files map[string][]byte) {
	sums := string(files["SHA256SUMS"])
	if strings.Count(sums, "\n") != len(files)-1 {
		t.Errorf("the sums are\n%s", sums)
	}
	for name, content := range files {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name); name != "SHA256SUMS" && !strings.Contains(sums, line) {
			t.Errorf("no sum of %s", name)
		}
	}
}

// program: it needs no library, says its version, and holds no path of the machine that built it.
func program(t *testing.T, path string) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %q, error %v", libraries, err)
	}
	out, err := exec.CommandContext(t.Context(), path, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "wasmproxy v"+version+"\n") {
		t.Errorf("got %q, %v", out, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(project)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(here)) {
		t.Errorf("it holds %s", here)
	}
}

func sbom(t *testing.T, document string, program []byte) {
	for _, want := range []string{
		`"spdxVersion": "SPDX-2.3"`, `"created": "2023-11-14T22:13:20Z"`, fmt.Sprintf(`"checksumValue": "%x"`, sha256.Sum256(program)),
		`"pkg:golang/github.com/wasmproxy/wasmproxy@v` + version + `"`, `"pkg:golang/stdlib@1.`, `"pkg:golang/github.com/tetratelabs/wazero@v1.`, `"relationshipType": "DEPENDS_ON"`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
}

var column = regexp.MustCompile(`(?m)^-(\S+) root/root +\d+ 2023-11-14 \S+ \.(\S+)$`)

// deb: its files are root's and have the commit's time. It enables and starts nothing.
func deb(t *testing.T, path string) {
	list := exec.CommandContext(t.Context(), "dpkg-deb", "--contents", path)
	list.Env = append(os.Environ(), "TZ=UTC")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	documents := 0
	for _, m := range column.FindAllStringSubmatch(string(out), -1) {
		if strings.HasSuffix(m[2], ".md") { // of docs
			documents++
			continue
		}
		if !strings.HasSuffix(m[2], ".1.gz") || m[2] == "/usr/share/man/man1/wasmproxy.1.gz" {
			got = append(got, m[1]+" "+m[2])
		}
	}
	slices.Sort(got)
	if want := []string{
		"rw-r--r-- /usr/lib/systemd/system/wasmproxy.service", "rw-r--r-- /usr/lib/systemd/system/wasmproxy.socket",
		"rw-r--r-- /usr/share/bash-completion/completions/wasmproxy", "rw-r--r-- /usr/share/doc/wasmproxy/changelog.gz", "rw-r--r-- /usr/share/doc/wasmproxy/copyright",
		"rw-r--r-- /usr/share/doc/wasmproxy/prometheus/alerts.yaml", "rw-r--r-- /usr/share/doc/wasmproxy/prometheus/dashboard.json",
		"rw-r--r-- /usr/share/doc/wasmproxy/wasmproxy.spdx.json", "rw-r--r-- /usr/share/fish/vendor_completions.d/wasmproxy.fish",
		"rw-r--r-- /usr/share/lintian/overrides/wasmproxy", "rw-r--r-- /usr/share/man/man1/wasmproxy.1.gz", "rw-r--r-- /usr/share/zsh/vendor-completions/_wasmproxy",
		"rwxr-xr-x /usr/bin/wasmproxy",
	}; !slices.Equal(got, want) {
		t.Errorf("the files are %q\nof\n%s", got, out)
	}
	if written, err := filepath.Glob(project + "/docs/*.md"); err != nil || documents != len(written) {
		t.Errorf("it has %d of %d documents, %v", documents, len(written), err)
	}
	debianTexts(t, path)
	control := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--control", path, control).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, content := range read(t, control) {
		if name == "control" || name == "md5sums" || name == "conffiles" {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(control, name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if strings.HasPrefix(name, "post") && regexp.MustCompile(`systemctl (enable|start)`).Match(content) {
			t.Errorf("%s enables or starts a unit", name)
		}
	}
}

// debianTexts: the changelog has the form that Debian's tools read, and the license is named as Debian has it.
func debianTexts(t *testing.T, path string) {
	unpacked := t.TempDir()
	script := `dpkg-deb --extract "$1" "$2" && gzip -dc "$2/usr/share/doc/wasmproxy/changelog.gz" && cat "$2/usr/share/doc/wasmproxy/copyright"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", path, unpacked).Output()
	if err != nil {
		t.Fatal(err)
	}
	changelog, copyright, _ := strings.Cut(string(out), "Format: ")
	form := regexp.MustCompile(`^wasmproxy \(1\.2\.3~rc\.1\) unstable; urgency=medium\n\n(  \* \S.*\n(    \S.*\n)*)+\n` +
		` -- The wasmproxy authors <\S+@\S+>  Tue, 14 Nov 2023 22:13:20 \+0000\n$`)
	if !form.MatchString(changelog) {
		t.Errorf("the changelog is\n%s", changelog)
	}
	for _, want := range []string{"\nLicense: Apache-2.0\n", "/usr/share/common-licenses/Apache-2.0."} {
		if !strings.Contains(copyright, want) {
			t.Errorf("the copyright lacks %q:\n%s", want, copyright)
		}
	}
}

// purge installs the package below a directory and purges it there: nothing of the proxy's stays.
func purge(t *testing.T, path string) {
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc/wasmproxy/plugins.d", "var/cache/wasmproxy", "run/wasmproxy/state"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=/dev/null"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := dpkg("--install", path); !strings.Contains(out, "wasmproxy host install --dry-run") {
		t.Errorf("the package does not say what comes next:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/bin/wasmproxy")); err != nil {
		t.Error(err)
	}
	dpkg("--purge", "wasmproxy")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "wasmproxy") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
