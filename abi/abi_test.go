package abi_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

func TestEveryHookIsFound(t *testing.T) {
	for i, info := range abi.Hooks {
		if int(info.Hook) != i+1 || info.Hook.Info() != info {
			t.Errorf("hook %d is row %d of the table", info.Hook, i+1)
		}
		if h, ok := abi.HookByName(info.Name); !ok || h != info.Hook || h.String() != info.Name {
			t.Errorf("%s is not found by its name", info.Name)
		}
		if (info.Method == "") != (info.Phase == abi.Standalone) {
			t.Errorf("%s: method %q goes with %v", info.Name, info.Method, info.Phase)
		}
	}
}

func TestEveryFieldIsFound(t *testing.T) {
	for _, f := range abi.Fields {
		if found, ok := abi.FieldOf(f.Object, f.Field); !ok || found != f {
			t.Errorf("%v field %d occurs twice", f.Object, f.Field)
		}
		if found, ok := abi.FieldByName(f.Object, f.Name); !ok || found != f {
			t.Errorf("%v.%s occurs twice", f.Object, f.Name)
		}
		if (f.Writable != 0) != (f.Writing != 0) {
			t.Errorf("%v.%s: writable in %q with capability %q", f.Object, f.Name, f.Writable.Names(), f.Writing)
		}
	}
}

func TestCapabilitiesAreInOrder(t *testing.T) {
	for i, info := range abi.Capabilities {
		if int(info.Capability) != i+1 || info.Capability.String() != info.Name {
			t.Errorf("%s is row %d of the table", info.Name, i+1)
		}
		if c, ok := abi.CapabilityByName(info.Name); !ok || c != info.Capability {
			t.Errorf("%s is not found by its name", info.Name)
		}
		if abi.DefaultGrant().Has(info.Capability) != info.Granted || !abi.AllCapabilities.Has(info.Capability) {
			t.Errorf("%s is not in the sets it should be in", info.Name)
		}
	}
	if n := len(abi.AllCapabilities.Names()); n != len(abi.Capabilities) {
		t.Errorf("%d of %d capabilities are in the set of all", n, len(abi.Capabilities))
	}
}

// The prose of the specification spells some numbers that are no table's.
func TestProseHasTheNumbers(t *testing.T) {
	var text []byte
	for _, page := range []string{"ABI.md", "OPTIONAL.md"} {
		more, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	for _, want := range []string{
		fmt.Sprintf("now %d |", abi.Version), "custom section `" + abi.ManifestSection + "`",
		fmt.Sprintf("at most %d KiB:", abi.MaxManifest>>10), fmt.Sprintf("| ≥ %d | a handle", abi.FirstHandle),
		fmt.Sprintf("| %d + a pod |", abi.QOSClass), fmt.Sprintf("%d that of the event's pod, %d that of handle %d", abi.QOSClass+abi.Pod, abi.QOSClass+abi.FirstHandle, abi.FirstHandle),
		fmt.Sprintf("- %d: the call goes on", abi.Continue), fmt.Sprintf("- %d: the call is refused", abi.Reject),
		fmt.Sprintf("%d or more", abi.MinTickMS),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("ABI.md and OPTIONAL.md do not say %q", want)
		}
	}
}

// The core stays short enough for others to write a host of it, and the links between the pages lead somewhere.
func TestPagesOfTheSpecification(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 7 {
		t.Fatalf("the pages are %q, %v", pages, err)
	}
	heading, link := regexp.MustCompile(`(?m)^#+ (.*)$`), regexp.MustCompile(`\]\(([A-Z]*\.md)?(?:#([a-z0-9_-]+))?\)`)
	texts, anchors := map[string]string{}, map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page], anchors[page] = string(text), true
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			anchor := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
			anchors[page+"#"+strings.ReplaceAll(anchor, " ", "-")] = true
		}
	}
	if n := len(strings.Fields(texts["ABI.md"])); n > 7000 {
		t.Errorf("ABI.md has %d words, more than 7000: move what is optional or explains to a page beside it", n)
	}
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := cmp.Or(m[1], page)
			if m[2] != "" {
				to += "#" + m[2]
			}
			if !anchors[to] {
				t.Errorf("%s links to %s, which is not there", page, to)
			}
		}
	}
}
