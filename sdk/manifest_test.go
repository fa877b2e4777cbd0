package sdk

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// FuzzManifest holds the hand-made encoder to encoding/json: both forms must
// mean the same.
func FuzzManifest(f *testing.F) {
	f.Add("qos", "1.0.0", "bursts & <idle> time", "Apache-2.0", "PreCreateContainer")
	f.Add("", "\x00\x1f\x7f\"\\/", "\xff\xc0\xaf\xed\xa0\x80", "\u2028\u2029\ufffd\U0010ffff", "\b\f\n\r\t")
	f.Fuzz(func(t *testing.T, name, version, description, license, word string) {
		m := abi.Manifest{Name: name, Version: version, Description: description, License: license,
			SDK: word, Hooks: []string{word, name}}
		if word != "" {
			m.Capabilities = []string{version, word}
		}
		standard, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var want, got abi.Manifest
		if err := json.Unmarshal(standard, &want); err != nil {
			t.Fatal(err)
		}
		ours := appendManifest(nil, m)
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("%v in %s", err, ours)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nmeans %+v\nwant  %+v", ours, got, want)
		}
	})
}

func TestManifestHooksAreInTheTablesOrderAndOnce(t *testing.T) {
	register(t, func() {
		none := func(*PostStopContainer) error { return nil }
		Plugin("p", "1").OnPostStopContainer(none).
			OnPreRunPodSandbox(func(*PreRunPodSandbox) error { return nil }).
			OnPostStopContainer(none)
	})
	var m abi.Manifest
	if err := json.Unmarshal(manifest(), &m); err != nil {
		t.Fatal(err)
	}
	want := abi.Manifest{Name: "p", Version: "1", SDK: "go 0.1.0 (gc)", Hooks: []string{"PreRunPodSandbox", "PostStopContainer"}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// register makes a plugin for one test: a real module registers only one.
func register(t *testing.T, f func()) {
	t.Helper()
	plugin = Registration{}
	t.Cleanup(func() { plugin = Registration{} })
	f()
}
