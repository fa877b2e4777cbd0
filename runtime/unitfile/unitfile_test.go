package unitfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

const aUnit = `# a comment \
[Unit]
Description = kubelet; the node's agent
[Service]
Environment="A=--one --two" 'B=x\x41"y'
  ; another comment
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet --first \
  # a comment between lines
  --second="a b"  \
--third
Restart=always`

// TestOptions: systemd's own Go library reads the same settings. It keeps continued lines apart, and
// knows less of comments.
func TestOptions(t *testing.T) {
	want, err := unit.DeserializeOptions(strings.NewReader(strings.NewReplacer("  # a comment between lines\n", "", "comment \\\n", "comment\n").Replace(aUnit)))
	if err != nil {
		t.Fatal(err)
	}
	got := unitfile.Options("kubelet.service", aUnit)
	if len(got) != len(want) {
		t.Fatalf("%d settings, want %d", len(got), len(want))
	}
	for i, w := range want {
		one, other := strings.Fields(got[i].Value.String()), strings.Fields(strings.ReplaceAll(w.Value, "\\\n", " "))
		if got[i].Section != w.Section || got[i].Name != w.Name || !slices.Equal(one, other) {
			t.Errorf("got [%s] %s=%s, want [%s] %s=%s", got[i].Section, got[i].Name, got[i].Value, w.Section, w.Name, w.Value)
		}
	}
}

// TestPlaces: each byte of a value is where its place says, unless it stands for an escape.
func TestPlaces(t *testing.T) {
	check := func(content string, v unitfile.Value) {
		t.Helper()
		for _, c := range v {
			if raw := content[c.From:c.To]; raw != string(c.Byte) && !strings.HasPrefix(raw, `\`) {
				t.Errorf("%q at %d is %q", c.Byte, c.From, raw)
			}
		}
	}
	for _, o := range unitfile.Options("f", aUnit) {
		words, err := o.Value.Words()
		if err != nil && o.Name != "Description" { // which has an apostrophe, and no words
			t.Errorf("%s: %v", o.Name, err)
		}
		for _, w := range words {
			check(aUnit, w)
		}
	}
	for _, v := range unitfile.Variables("f", variables) {
		check(variables, v.Value)
	}
}

// TestWords has the quoting that systemd.service(5) describes.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		`a  b	c`:            {"a", "b", "c"},
		`"a b" 'c d'`:       {"a b", "c d"},
		`--x="a b"c 'd'"e"`: {"--x=a bc", "de"},
		`a\sb \x41\102 \t`:  {"a b", "AB", "\t"},
		`"a\"b" 'c\'d'`:     {`a"b`, `c'd`},
		`\q \u00e9`:         {`\q`, "é"},
		`"" x`:              {"", "x"},
	} {
		var got []string
		words, err := unitfile.Plain("", text).Words()
		for _, w := range words {
			got = append(got, w.String())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := unitfile.Plain("", `a "b`).Words(); err == nil {
		t.Error("an open quote is no error")
	}
}

const variables = "# A=comment\n;B=comment\n  C = plain text  \nD=\"a \\\"b\\\" \\c $d\" more\nE='it \\ is' # stays\nF=one \\\n two\n\nno variable\n" +
	"G=--x=\"quotes stay\"\r\nH=\nC=last\nI=\"two\nlines\"\nJ=a\\ b\\"

// TestVariables has the format of parse_env_file of systemd, as systemd.exec(5) describes it.
func TestVariables(t *testing.T) {
	want := []string{"C=plain text", `D=a "b" \c $dmore`, `E=it \ is# stays`, "F=one  two", `G=--x="quotes stay"`, "H=", "C=last", "I=two\nlines", `J=a b\`}
	var got []string
	for _, v := range unitfile.Variables("f", variables) {
		got = append(got, v.Name+"="+v.Value.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestExpand: a variable as a word is split, one in a word is not.
func TestExpand(t *testing.T) {
	vars := map[string]unitfile.Value{"A": unitfile.Plain("", `--a 'b c' d\ e`), "B": unitfile.Plain("", "x y")}
	words, err := unitfile.Plain("", `k "$A" $NONE --b=${B} $$A ${NONE} a$B`).Words()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range unitfile.Expand(words, vars) {
		got = append(got, w.String())
	}
	if want := []string{"k", "--a", "b c", "d e", "--b=x y", "$A", "", "a$B"}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestFind: the directory that wins has the unit, a drop-in hides those of its name in later directories, and a link to
// /dev/null hides them all.
func TestFind(t *testing.T) {
	root := t.TempDir()
	put := func(path, target string) {
		at := filepath.Join(root, path)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err == nil && target != "" {
			err = os.Symlink(target, at)
		} else if err == nil {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("/usr/lib/systemd/system/kubelet.service", "")
	put("/usr/local/lib/systemd/system/kubelet.service", "")
	put("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "")
	put("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", "")
	put("/usr/lib/systemd/system/kubelet.service.d/05-vendor.conf", "")
	put("/etc/systemd/system/kubelet.service.d/05-vendor.conf", "/dev/null")
	put("/usr/lib/systemd/system/service.d/50-all.conf", "")
	put("/etc/systemd/system/kubelet.service.d/notes.txt", "")
	put("/etc/systemd/system/masked.service", "/dev/null")
	under := func(path string) string { return filepath.Join(root, path) }
	want := []string{"/usr/local/lib/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", "/usr/lib/systemd/system/service.d/50-all.conf"}
	if got := unitfile.Find(under, "kubelet.service"); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := unitfile.Find(under, "masked.service"); len(got) > 0 {
		t.Errorf("a masked unit has %q", got)
	}
}
