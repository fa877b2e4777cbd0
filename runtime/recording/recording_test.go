package recording

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) < 4 {
		t.Fatalf("%s has the files %q, %v", pattern, all, err)
	}
	return all
}

func read(t *testing.T, file string) (*Recording, error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Read(f)
}

// What was written by hand is read, and written again is the same recording.
func TestGoodRecordings(t *testing.T) {
	for _, file := range files(t, "testdata/good/*.jsonl") {
		rec, err := read(t, file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again := write(t, rec)
		second, err := Read(bytes.NewReader(again))
		if err != nil {
			t.Errorf("%s: what was written is not read: %v\n%s", file, err, again)
			continue
		}
		if third := write(t, second); !bytes.Equal(again, third) || len(second.Calls) != len(rec.Calls) {
			t.Errorf("%s: written\n%s, and once more\n%s", file, again, third)
		}
		if cut := strings.Contains(file, "cut") || strings.Contains(file, "no-last"); cut != (rec.End == nil) {
			t.Errorf("%s: the last line is %+v", file, rec.End)
		}
	}
}

func write(t *testing.T, rec *Recording) (all []byte) {
	t.Helper()
	lines := []any{rec.Header}
	for i := range rec.Calls {
		lines = append(lines, &rec.Calls[i])
	}
	if rec.End != nil {
		lines = append(lines, rec.End)
	}
	for _, line := range lines {
		text, err := encode(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// A recording that is wrong is refused, with the line and the reason.
func TestBadRecordings(t *testing.T) {
	want := map[string]string{
		"empty":                      "line 1: the file is no recording",
		"no-recording":               "line 1: the file is no recording",
		"reordered":                  "line 1: the file is no recording",
		"other-version":              "line 1: the format is version 2, and this program reads version 1",
		"after-the-end":              "line 3: it is after the last line",
		"two-recordings":             "line 3: a second first line",
		"unknown-hook":               `line 2: hook: unknown hook "PreDance"`,
		"unknown-key":                `line 2: json: unknown field "tiem"`,
		"unknown-capability":         `line 1: grant: unknown capability "fly"`,
		"unknown-function":           `there is no host function "gets"`,
		"unknown-field":              `field: pod has no field "colour"`,
		"unknown-object":             `object: there is no object "nodes"`,
		"unknown-error":              `error: there is no error "SAD"`,
		"no-answer":                  "is: there is no answer",
		"two-answers":                "is: there are both an answer and an error",
		"two-questions":              "get and get_i64 in one question",
		"answer-of-a-change":         "is: map_set answers nothing but errors",
		"few-arguments":              "it has 2 arguments, want 3",
		"wrong-type":                 "is: 1 is no number",
		"large-number":               "is: strconv.ParseInt",
		"nested":                     "exceeded max depth",
		"record-with-an-unknown-key": "element: want a text",
		"handle-without-kind":        `"name": want the kind before the field of a handle`,
		"half-a-line":                "line 2: ",
	}
	for _, file := range files(t, "testdata/bad/*.jsonl") {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		_, err := read(t, file)
		if err == nil || want[name] == "" || !strings.Contains(err.Error(), want[name]) {
			t.Errorf("%s: the error is %.300v, want %q", file, err, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("there is no file of %s", name)
	}
}

// What is too long to be a recording is refused before it fills the memory.
func TestReadIsBounded(t *testing.T) {
	const begin = `{"recording":1,"plugin":"x","node":{}}` + "\n"
	blank := strings.Repeat(" ", maxLine/2) + "\n"
	many := []io.Reader{strings.NewReader(begin)}
	for range 2*maxFile/maxLine + 1 {
		many = append(many, strings.NewReader(blank))
	}
	for want, in := range map[string]io.Reader{
		"line 2: it has more than 16777216 bytes": strings.NewReader(begin + blank[:maxLine/2] + blank),
		"the recording has more than":             io.MultiReader(many...),
		"torn":                                    io.MultiReader(strings.NewReader(begin), iotest.ErrReader(errors.New("torn"))),
	} {
		if _, err := Read(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func function(t *testing.T, name string) *abi.Function {
	t.Helper()
	for i := range abi.Functions {
		if abi.Functions[i].Name == name {
			return &abi.Functions[i]
		}
	}
	t.Fatalf("there is no function %s", name)
	return nil
}

// Nothing of the environment is spelled, nor what is known as a secret, and both are marked.
func TestSecretsAreHidden(t *testing.T) {
	text := func(s string) plugin.Arg { return plugin.Arg{Text: s, IsText: true} }
	on := func(o abi.Object, f abi.Field) []plugin.Arg {
		return []plugin.Arg{{Number: int64(o)}, {Number: int64(f)}}
	}
	env := abi.AppendEntries(nil, func(yield func(k, v string) bool) { yield("TOKEN_NAME", "s3cr3t-value") })
	annotations := abi.AppendEntries(nil, func(yield func(k, v string) bool) {
		_ = yield("a", "x s3cr3t-value y") && yield(lastApplied, "whole manifest")
	})
	redactor := plugin.NewRedactor("s3cr3t-value")
	for _, c := range []struct {
		q      plugin.Question
		hidden bool
		has    string // with env
	}{
		{plugin.Question{Function: function(t, "map_dump"), Kind: abi.Container, Args: on(abi.Container, abi.ContainerEnv), Data: env}, true, "TOKEN_NAME"},
		{plugin.Question{Function: function(t, "map_get"), Kind: abi.Container, Args: append(on(abi.Container, abi.ContainerEnv), text("TOKEN_NAME")), Data: []byte("s3cr3t-value")}, true, "TOKEN_NAME"},
		{plugin.Question{Function: function(t, "map_set"), Kind: abi.Container, Args: append(on(abi.Container, abi.ContainerEnv), text("TOKEN_NAME"), text("new-value"))}, false, "TOKEN_NAME"},
		{plugin.Question{Function: function(t, "map_dump"), Kind: abi.Pod, Args: on(abi.Pod, abi.PodAnnotations), Data: annotations}, true, "x (hidden) y"},
		{plugin.Question{Function: function(t, "map_get"), Kind: abi.Pod, Args: append(on(abi.Pod, abi.PodAnnotations), text(lastApplied)), Data: []byte("whole manifest")}, true, lastApplied},
		{plugin.Question{Function: function(t, "list_dump"), Kind: abi.Container, Args: on(abi.Container, abi.ContainerArgs), Data: abi.AppendList(nil, []string{"--t=s3cr3t-value"})}, true, "--t=(hidden)"},
		{plugin.Question{Function: function(t, "cri_raw"), Data: []byte("request s3cr3t-value")}, true, "cri_raw"},
		{plugin.Question{Function: function(t, "kv_get"), Args: []plugin.Arg{text("k")}, Data: []byte("\xffs3cr3t-value")}, true, "(hidden)"},
	} {
		for _, names := range []bool{true, false} {
			a := Spell(c.q, names, redactor)
			got, err := a.MarshalJSON()
			if err != nil || a.Hidden != c.hidden && names {
				t.Errorf("%s: hidden is %t, error %v", got, a.Hidden, err)
			}
			for _, secret := range []string{"s3cr3t", "whole manifest", "new-value", "633363723374"} {
				if bytes.Contains(got, []byte(secret)) {
					t.Errorf("%s has %s", got, secret)
				}
			}
			if !names && bytes.Contains(got, []byte("TOKEN_NAME")) || names && !bytes.Contains(got, []byte(c.has)) {
				t.Errorf("with the names of variables %t: %s", names, got)
			}
		}
	}
}
