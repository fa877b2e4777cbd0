package schema_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/schema"
)

// A manifest has at most 16 KiB; no schema in it, and no config held against it, may take more.
const (
	maxText      = 16 << 10
	maxAllocated = 50 << 20
	maxProcessor = time.Second * slower
)

// costs holds f to what one schema may take. It counts all that is allocated, which is more
// than what is there at a time.
func costs(t *testing.T, f func()) {
	t.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime(t)
	f()
	took := processorTime(t) - start
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB, %v", allocated>>10, took)
	if allocated > maxAllocated || took > maxProcessor {
		t.Errorf("it allocated %d MiB and took %v of processor time, want at most %d MiB and %v", allocated>>20, took, maxAllocated>>20, maxProcessor)
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// patterns is a schema of as many patterns as a manifest has room for. The number of
// each takes the place of #, so that no two are alike.
func patterns(pattern string) string {
	text := `{"allOf":[{}`
	for i := 0; ; i++ {
		next := `,{"pattern":"` + strings.NewReplacer("#", fmt.Sprint(i), `\`, `\\`).Replace(pattern) + `"}`
		if len(text)+len(next)+2 > maxText {
			return text + "]}"
		}
		text += next
	}
}

// fill is a schema of as many items as a manifest has room for.
func fill(before, item, after string) string {
	n := (maxText - len(before) - len(after) - len(item)) / (len(item) + 1)
	return before + strings.Repeat(item+",", n) + item + after
}

// nested is a schema of so many levels.
func nested(levels int) string {
	return strings.Repeat(`{"not":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

// TestN65UnicodeClasses to TestN67Depth give schemas of a manifest's size that took the
// proxy gigabytes of memory, or a processor for many seconds.
func TestN65UnicodeClasses(t *testing.T) {
	for _, pattern := range []string{`^\pL{600}#`, `^\pL{30}#`, strings.Repeat(`\pL`, 100) + `#`, `^[\pL\pN\pS\pP\pZ]#`} {
		refuses(t, patterns(pattern), "comes to more than 20000 instructions")
	}
}

func TestN66UnicodeClassesInAnyCase(t *testing.T) {
	for _, pattern := range []string{`(?i:\pL{600})#`, `(?i)\pL#`, `(?i)[B-\x{1E942}]#`, `(?i)[B-𞥂]#`, `(?s-mi:\PL)#`} {
		refuses(t, patterns(pattern), "comes to more than 20000 instructions")
	}
}

func TestN67Depth(t *testing.T) {
	for _, text := range []string{nested(2000), strings.Repeat("[", 8000) + strings.Repeat("]", 8000), `{"x":` + nested(65) + `}`} {
		refuses(t, text, "it has more than 64 objects and lists within one another")
	}
}

func TestPatternsThatAreTooLarge(t *testing.T) {
	for _, text := range []string{
		patterns(`^a{40}#`), patterns(`(a{30}){30}#`), patterns(`(a{1,}){500}#`),
		`{"pattern":"` + strings.Repeat("a", 2001) + `"}`,
		`{"patternProperties":{"^\\pL{800}":{}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","patternProperties":{"^\\pL{800}":{}}}`,
	} {
		refuses(t, text, "comes to more than 20000 instructions")
	}
}

func refuses(t *testing.T, text, want string) {
	t.Helper()
	var err error
	costs(t, func() { _, err = schema.Parse(text) })
	if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
		t.Errorf("%.40s: got %v, want %q", text, err, want)
	}
}

// TestLargestSchemas reads schemas that are as large as they may be, or wrong in as many
// places: what is accepted stays within bounds too.
func TestLargestSchemas(t *testing.T) {
	for name, text := range map[string]string{
		"many schemas":            fill(`{"allOf":[`, `{}`, `]}`),
		"many schemas of 2019":    fill(`{"$schema":"https://json-schema.org/draft/2019-09/schema","allOf":[`, `{}`, `]}`),
		"many schemas of draft 7": fill(`{"$schema":"http://json-schema.org/draft-07/schema#","allOf":[`, `{}`, `]}`),
		"many deep ones":          fill(`{"allOf":[`, nested(61), `]}`),
		"many that are wrong":     fill(`{"allOf":[`, `1`, `]}`),
		"references":              fill(`{"x":{},"allOf":[`, `{"$ref":"#/x"}`, `]}`),
		"numbers":                 fill(`{"allOf":[`, `{"maximum":1e308}`, `]}`),
		"classes in one class":    `{"pattern":"(?i)[` + strings.Repeat(`\\pL`, 38) + `]"}`,
		"letters of any case":     `{"pattern":"(?i)[` + strings.Repeat(`B-𞥂`, 38) + `]"}`,
		"repeated class":          `{"pattern":"^\\pL{1,300}$"}`,
		"nested brackets":         `{"pattern":"` + strings.Repeat("(", 900) + strings.Repeat(")", 900) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			costs(t, func() {
				s, err := schema.Parse(text)
				if (err != nil) != (name == "many that are wrong") {
					t.Fatal(err)
				}
				if s != nil {
					_ = s.Check([]byte(`{"a":"` + strings.Repeat("a", 2000) + `"}`))
				}
			})
		})
	}
}

// TestLargestChecks holds configs against schemas that take as long as they may.
func TestLargestChecks(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	for _, tt := range []struct{ name, schema, config, want string }{
		{"problems", fill(`{"items":{"allOf":[`, `false`, `]}}`), list(28), "/7: false schema; and "},
		{"more problems", fill(`{"items":{"allOf":[`, `false`, `]}}`), list(400), "it has 401 values in 801 bytes, too many for a schema of 2730 parts"},
		{"long text", fill(`{"allOf":[`, `{"minLength":1}`, `]}`), `"` + strings.Repeat("a", 1<<20) + `"`, "too many for a schema of"},
		{"long names of problems", `{"items":` + fill(`{"enum":[`, `"x"`, `]}}`), list(18), "/7: value must be one of"},
		{"match", `{"pattern":"(?:a?){500}b"}`, `"` + strings.Repeat("a", 10_000) + `"`, "does not match pattern"},
		{"longer match", `{"pattern":"(?:a?){500}b"}`, `"` + strings.Repeat("a", 20_000) + `"`, "its regular expressions are too large for so long a config"},
		{"many matches", `{"items":{"pattern":"(?:a?){500}b"}}`, `["` + strings.Repeat(strings.Repeat("a", 5_000)+`","`, 5) + `"]`, "its regular expressions are too large for so long a config"},
		{"numbers of a million digits", `{"items":{"multipleOf":3}}`, "[" + strings.Repeat("1e999999,", 200) + "3]", ": number 1e999999 has more digits than are computed with"},
		{"patterns in the config", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`, `["` + strings.Repeat(`^\\pL{600}","`, 600) + `"]`, "comes to more than 20000 instructions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := schema.Parse(tt.schema)
			if err != nil {
				t.Fatal(err)
			}
			costs(t, func() { err = s.Check([]byte(tt.config)) })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.300v, want %q", err, tt.want)
			}
		})
	}
}

// TestPatternsOfRealSchemas reads the expressions of Kubernetes' own validation, each in
// twenty places, and a few that are larger.
func TestPatternsOfRealSchemas(t *testing.T) {
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`,
		`^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$`,
		`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`,
		`^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$`,
		`(?i)^[a-f0-9]{64}$`, `^\p{L}[\p{L}\p{N} _-]{0,63}$`, `(?i)^(oui|non|à demi)$`,
	} {
		quoted := strings.ReplaceAll(pattern, `\`, `\\`)
		if _, err := schema.Parse(`{"allOf":[` + strings.Repeat(`{"pattern":"`+quoted+`"},`, 20) + `{}]}`); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
