package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is the same but for its shadow, wherever in it that stands.
func TestWithoutShadow(t *testing.T) {
	for _, test := range []struct{ with, without string }{
		{`{"config": {"shadow": 1}, "order": "15"}`, `{"config": {"shadow": 1}, "order": "15"}`},
		{`{"config": 1, "shadow": {"wasm-module": "a"}}`, `{"config": 1}`},
		{"{\n  \"config\": 1,\n  \"shadow\": {\"a\": [1, 2]}\n}\n", "{\n  \"config\": 1\n}\n"},
		{`{"config": 1, "shadow": {"a": "}, {"}, "order": "15"}`, `{"config": 1, "order": "15"}`},
		{`{"shadow": {}, "config": 1}`, `{"config": 1}`},
		{`{ "shadow": {}, "config": 1 }`, `{ "config": 1 }`},
		{"{\"shadow\": {}, \n  \"config\": 1\n}\n", "{\n  \"config\": 1\n}\n"},
		{"{\n  \"shadow\": {},\n  \"config\": 1\n}\n", "{\n  \"config\": 1\n}\n"},
		{`{"shadow": {}}`, `{}`},
		{`{"shadow": 1, "shadow": 2}`, `{}`},
		{`{"\u0073hadow": {}, "config": 1, "shadow" : null}`, `{"config": 1}`},
		{`[1, 2`, `[1, 2`}, {`{"shadow": `, `{"shadow": `}, {``, ``},
	} {
		if got := string(withoutShadow([]byte(test.with))); got != test.without {
			t.Errorf("%s without its shadow is %s, want %s", test.with, got, test.without)
		}
	}
}

// A shadow is no part of the version of its plugin. What is wrong with it is its own problem.
func TestShadowOfADescription(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, Modules), 0o755); err != nil {
		t.Fatal(err)
	}
	write("10-a.wasm", magic+"a")
	write("10-b.wasm", magic+"b")
	write(".modules/next.wasm", magic+"next")
	read := func(json string) Description {
		t.Helper()
		write("10-a.json", json)
		list, problems := Read(Dirs{Plugins: dir})
		if len(list) != 2 || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", json, list, problems)
		}
		return list[0]
	}
	alone := read(`{"order": "05", "match": {"namespaces": ["a"]}}`)
	for shadow, says := range map[string]string{
		`{"wasm-module": ".modules/next.wasm", "config": 1, "timeout": "1s", "grant": ["env"]}`: "",
		`{"wasm-module": "10-a.wasm", "sample": 7}`:                                             "",
		`{"wasm-module": "10-b.wasm"}`:                                                          "10-b.wasm is not the plugin's own module: put it into .modules, and name it .modules/10-b.wasm",
		`{"wasm-module": ".modules/none.wasm"}`:                                                 "there is no .modules/none.wasm beside the file",
		`{"wasm-module": ".modules/next.wasm", "sha256": "` + strings.Repeat("ab", 32) + `"}`:   "is wanted, and .modules/next.wasm has",
		`{"wasm-module": ".modules/next.wasm", "sample": 0}`:                                    "sample: 0 is not between 1 and 100 percent",
		`{"wasm-module": ".modules/next.wasm", "dry-run": true}`:                                `unknown key "dry-run"`,
		`{"sample": 7}`: "wasm-module: is missing",
		`7`:             "7 is not an object",
	} {
		d := read(`{"order": "05", "match": {"namespaces": ["a"]}, "shadow": ` + shadow + `}`)
		if d.Shadow == nil || d.Source() != alone.Source() || d.Generation() != alone.Generation() || d.Same(alone) {
			t.Errorf("%s: %+v", shadow, d)
			continue
		}
		switch problem := d.Shadow.Problem; {
		case says != "":
			if problem == nil || !strings.Contains(problem.Error(), "10-a.json: shadow: ") || !strings.Contains(problem.Error(), says) {
				t.Errorf("%s: the problem is %v", shadow, problem)
			}
		case problem != nil || d.Shadow.ID != d.ID || d.Shadow.Sample == 0 || len(d.Shadow.Match.Namespaces) != 1:
			t.Errorf("%s: %+v", shadow, d.Shadow)
		default:
			if module, err := d.Shadow.ReadModule(); err != nil || !strings.HasPrefix(string(module), magic) {
				t.Errorf("%s: %q, %v", shadow, module, err)
			}
		}
	}
	if d := read(`{"order": "06", "match": {"namespaces": ["a"]}, "shadow": {}}`); d.Generation() == alone.Generation() {
		t.Error("a change beside the shadow is the same generation")
	}
	if d := read(`{"dry-run": true, "shadow": {"wasm-module": ".modules/next.wasm"}}`); !strings.Contains(d.Shadow.Problem.Error(), "dry-run") {
		t.Error(d.Shadow.Problem)
	}
}
