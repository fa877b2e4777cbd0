package c

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/image"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
	"github.com/wasmproxy/wasmproxy/sdk/internal/vectors"
)

// texts are labels that a vector becomes, or annotations that it wants.
type texts map[string]string

// TestLibrary tells the vectors to a plugin that calls the library.
func TestLibrary(t *testing.T) {
	g := guest.Open(t, build(t, "testdata/library.c"))
	g.Keep(t, "")
	ask := func(part string, labels, want texts) {
		t.Helper()
		changes := fixture.Changes{}
		for key, v := range want {
			if v != "" {
				changes["container.annotations["+strconv.Quote(key)+"]"] = v
			}
		}
		c := fixture.Case{
			Name: fmt.Sprint(labels), Hook: abi.PreCreateContainer, Grant: abi.DefaultGrant(),
			Container: fixture.Fields{"name": part, "labels": map[string]string(labels)}, Want: &fixture.Want{Changes: changes},
		}
		if err := c.Want.Compare(g.Answer(t, c)); err != nil {
			t.Errorf("%s %q: %v", part, labels, err)
		}
	}
	f := vectors.Load(t, "..")
	for _, v := range f.JSON {
		ask("json", texts{"text": v.Text}, texts{"error": v.Error})
		for _, r := range v.Reads {
			labels := texts{
				"text": v.Text, "in": r.In, "key": r.Key, "get": r.Get,
				"least": strconv.FormatInt(r.Least, 10), "most": strconv.FormatInt(r.Most, 10),
			}
			for i, value := range r.Values {
				labels["value"+strconv.Itoa(i)] = value
			}
			ask("json", labels, texts{"is": r.Is, "error": r.Error})
		}
	}
	for _, v := range f.Glob {
		labels := texts{"text": v.Name}
		for i, glob := range v.Globs {
			labels["glob"+strconv.Itoa(i)] = glob
		}
		ask("glob", labels, texts{"accepts": strconv.FormatBool(v.Accepts), "invalid": yes(v.Invalid)})
	}
	for _, v := range f.Image {
		want := texts{
			"registry": v.Registry, "repository": v.Repository, "tag": v.Tag, "digest": v.Digest,
			"short": yes(v.Short), "id": yes(v.ID), "error": v.Error,
		}
		if ref, err := image.Parse(v.Name); err == nil {
			want["string"] = ref.String()
		}
		ask("image", texts{"text": v.Name}, want)
	}
	for _, v := range f.Quantity {
		ask("quantity", texts{"text": v.Text}, texts{
			"value": strconv.FormatInt(v.Value, 10), "milli": strconv.FormatInt(v.Milli, 10), "error": v.Error,
		})
	}
	for _, v := range f.Decimal {
		labels := texts{"text": v.Text, "decimals": strconv.Itoa(v.Decimals)}
		ask("decimal", labels, texts{"value": strconv.FormatInt(v.Value, 10), "error": v.Error})
	}
}

// TestReadmeOfTheLibrary builds what README.md shows of the library.
func TestReadmeOfTheLibrary(t *testing.T) {
	const around = `#include "wasmproxy_library.h"
WP_PLUGIN({"name": "library", "version": "1", "hooks": ["PreCreateContainer"]})
%s
int32_t wp_hook(int32_t hook) { return hook && threshold + memory > 0 ? create() : wp_result(); }
`
	dir := t.TempDir()
	source, fixtures := filepath.Join(dir, "library.c"), filepath.Join(dir, "library.json")
	block := guest.Example(t, "README.md", "## The library", "c")
	const cases = `[
  {"name": "image", "hook": "PreCreateContainer", "container": {"image": "nginx"},
    "want": {"reject": {"code": 7, "reason": "docker.io/library/nginx:latest is from docker.io"}}},
  {"name": "another", "hook": "PreCreateContainer", "container": {"image": "quay.io/x"}, "want": {}},
  {"name": "threshold", "hook": "PreCreateContainer", "config": {"threshold": 101}, "container": {},
    "want": {"error": "threshold at byte 13: 101 is not a whole number from 0 to 100"}}
]`
	err := errors.Join(os.WriteFile(source, fmt.Appendf(nil, around, block), 0o644), os.WriteFile(fixtures, []byte(cases), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	guest.Play(t, build(t, source), fixtures)
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}
