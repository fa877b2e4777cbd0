package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// host is the directory of a trust file, with its files by name.
func host(t *testing.T, files map[string][]byte) *trust.File {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return trust.NewFile(filepath.Join(dir, "trust.yaml"))
}

// TestBrokenFile has each trust file that cannot be used name the file and what is wrong. It never counts as no file.
func TestBrokenFile(t *testing.T) {
	key := trusttest.NewKey(t).Public(t)
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "repositories is empty"},
		{"not YAML", "{", "trust.yaml: "},
		{"an unknown key", "repositories:\n- {name: r/p, kye: k.pub}\n", `unknown field "kye"`},
		{"no name", "repositories:\n- {key: k.pub}\n", "name is not a repository"},
		{"a pattern in the middle", "repositories:\n- {name: r/*/p, key: k.pub}\n", "name is not a repository"},
		{"every repository", "repositories:\n- {name: \"/*\", key: k.pub}\n", "name is not a repository"},
		{"neither", "repositories:\n- {name: r/p}\n", `repositories[0], "r/p": it needs either key, or issuer and identity`},
		{"both", "repositories:\n- {name: r/p, key: k.pub, issuer: i, identity: d}\n", "it needs either key"},
		{"no identity", "trusted-root: root.json\nrepositories:\n- {name: r/p, issuer: i}\n", "issuer and identity belong together"},
		{"any identity", "trusted-root: root.json\nrepositories:\n- {name: r/p, issuer: i, identity: \"*\"}\n", "identity is only *"},
		{"no root is named", "repositories:\n- {name: r/p, issuer: i, identity: d}\n", "issuer needs trusted-root"},
		{"no such key", "repositories:\n- {name: r/p, key: away.pub}\n", "away.pub: no such file"},
		{"not a key", "repositories:\n- {name: r/p, key: root.json}\n", "root.json is not a public key"},
		{"a private key", "repositories:\n- {name: r/p, key: private}\n", "is a private key"},
		{"a key elsewhere", "repositories:\n- {name: r/p, key: /etc/k.pub}\n", "not a path in the directory of the trust file"},
		{"no such root", "trusted-root: away.json\nrepositories:\n- {name: r/p, issuer: i, identity: d}\n", "trusted-root: "},
		{"too large", strings.Repeat("#", 1<<20) + "\n", "trust.yaml: "},
	} {
		f := host(t, map[string][]byte{
			"trust.yaml": []byte(test.text), "k.pub": key, "root.json": []byte("{}"),
			"private": []byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"),
		})
		p, _, err := f.Policy()
		if p != nil || !errors.Is(err, trust.ErrRefused) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "trust.yaml") {
			t.Errorf("%s: %v, %v", test.name, p, err)
		}
	}
}

// TestFileChanges has a file be read again when it comes, changes and goes, or when a file does that it names.
func TestFileChanges(t *testing.T) {
	dir := t.TempDir()
	f := trust.NewFile(filepath.Join(dir, "trust.yaml"))
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Hour) // however coarse the file system's clock is
		os.Chtimes(filepath.Join(dir, name), later, later)
	}
	last := 0
	step := func(name string, there, good, changed bool) {
		t.Helper()
		p, changes, err := f.Policy()
		if (p != nil) != there || (err == nil) != good || (changes != last) != changed {
			t.Errorf("%s: the policy is %v (%v), and it has changed %d times, before %d", name, p, err, changes, last)
		}
		last = changes
	}
	step("no file", false, true, true)
	step("still no file", false, true, false)
	write("trust.yaml", []byte("repositories:\n- {name: r/p, key: k.pub}\n"))
	step("a file without its key", false, false, true)
	step("which is still not there", false, false, false)
	write("k.pub", trusttest.NewKey(t).Public(t))
	step("the key has come", true, true, true)
	step("nothing happens", true, true, false)
	time.Sleep(50 * time.Millisecond) // the clock of a file system is coarse
	if err := os.Chmod(filepath.Join(dir, "k.pub"), 0o600); err != nil {
		t.Fatal(err)
	}
	step("the key has another mode, so that it may be one that can be read", true, true, true)
	write("k.pub", []byte("broken"))
	step("the key is broken", false, false, true)
	if err := os.Remove(filepath.Join(dir, "trust.yaml")); err != nil {
		t.Fatal(err)
	}
	step("the file has gone", false, true, true)
	if err := os.Symlink("/nowhere", filepath.Join(dir, "trust.yaml")); err != nil {
		t.Fatal(err)
	}
	step("a link that leads nowhere is a file", false, false, true)
}

// TestShortName: an entry of one repository decides before that of all below, whichever comes first, also if the last part of its name is
// as short as the *.
func TestShortName(t *testing.T) {
	key := trusttest.NewKey(t).Public(t)
	f := host(t, map[string][]byte{
		"trust.yaml": []byte("repositories:\n- {name: r/p/*, key: all.pub}\n- {name: r/p/q, key: one.pub}\n"), "all.pub": key, "one.pub": key,
	})
	p, _, err := f.Policy()
	if err != nil {
		t.Fatal(err)
	}
	if rules, err := p.Rules("r/p/q"); err != nil || len(rules) != 1 || rules[0].Key != "one.pub" {
		t.Errorf("of r/p/q decide %+v, error %v", rules, err)
	}
}
