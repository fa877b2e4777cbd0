package intercept_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modelFault is a defect that TestModel has to find: a text of the packages that enforce values, and what stands in its
// place. FAULT is true in the run in which the defect is planted.
type modelFault struct{ name, text, planted string }

var modelFaults = []modelFault{
	{"an undo does not look at the memory in use", "if used.Above(most) {", "if used.Above(most) && !FAULT {"},
	{"an update does not look at the memory in use", "if !used.Above(rules.Limit{", "if FAULT || !used.Above(rules.Limit{"},
	{"a new value of kubelet's is not heard", "	if v.repeats(value) {\n", "	if FAULT || v.repeats(value) {\n"},
	{"what is to be sent or written is not saved before", "	if len(ids) > 0 {\n		l.save(ids...)\n",
		"	writing := false\n	for _, id := range ids {\n		if o := l.find(id); o != nil {\n			for _, v := range o.values {\n" +
			"				writing = writing || v.Writing != \"\"\n			}\n		}\n	}\n" +
			"	if len(ids) > 0 && !(FAULT && writing) {\n		l.save(ids...)\n"},
	{"what was sent is forgotten", "ok && (v.Last != value || ", "ok && (v.Last != value || FAULT || "},
	{"the end of a plugin is skipped", "		case g == nil:\n			return true\n", "		case g == nil:\n			return !FAULT\n"},
	{"a busy queue drops an object", "	if waits := w.waiting[key]; waits != nil {\n",
		"	if FAULT && w.pending > 0 {\n		return w.idle\n	}\n	if waits := w.waiting[key]; waits != nil {\n"},
	{"an object is reconciled beside its call", "	if before != nil { // a call that hangs",
		"	if before != nil && FAULT {\n		<-w.slots\n	} else if before != nil { // a call that hangs"},
	{"a refused call leaves its wish", "		v.Wishes[i] = *former\n", "		if !FAULT {\n			v.Wishes[i] = *former\n		}\n"},
	{"a new connection drops records of what lives", `if container != "" && !live(ID{uid, container}) {`,
		`if container != "" && (FAULT || !live(ID{uid, container})) {`},
	{"the last wish is the first", "	v.Wishes = append(v.Wishes, w)\n	return nil\n",
		"	if v.Wishes = append(v.Wishes, w); FAULT {\n		slices.Reverse(v.Wishes)\n	}\n	return nil\n"},
	{"what kubelet has sent is noted after what waits for the call",
		"		c.Ledger.Record(id).Updated(u)\n",
		"		note := func() { c.Ledger.Record(id).Updated(u) }\n		if !FAULT || makes || !c.Queue.Go(id.Container, note) {\n			note()\n		}\n"},
	{"a repeated value of kubelet's overwrites a wish", "		c.repeatWishes()\n", "		if !FAULT {\n			c.repeatWishes()\n		}\n"},
}

// TestModelFindsFaults plants each defect in a copy of the sources and holds that TestModel fails then, and without one
// does not. One binary has all of them, since building it takes longer than a run.
func TestModelFindsFaults(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "model.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", plantFaults(t), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the model with the faults: %v\n%s", err, out)
	}
	run := func(fault string, sequences int) error {
		cmd := exec.Command(binary, "-test.run=^TestModel$", "-test.failfast", fmt.Sprint("-model-seeds=", sequences))
		cmd.Env = append(os.Environ(), "PLANTED_FAULT="+fault)
		out, err := cmd.CombinedOutput()
		found, _, _ := strings.Cut(string(out), "the last steps")
		t.Logf("%s: %v\n%s", fault, err, found)
		return err
	}
	if err := run("", 5); err != nil {
		t.Error("the model fails without a fault")
	}
	for _, f := range modelFaults {
		if run(f.name, 100) == nil {
			t.Errorf("the model does not find that %s", f.name)
		}
	}
}

// plantFaults returns an overlay of the sources in which FAULT goes by an environment variable.
func plantFaults(t *testing.T) (overlay string) {
	var files []string
	for _, pattern := range []string{"../intercept/*.go", "../enforce/*.go", "../workqueue/*.go"} {
		all, err := filepath.Glob(pattern)
		check(err)
		files = append(files, all...)
	}
	sources := map[string]string{}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file)
			check(err)
			sources[file] = string(text)
		}
	}
	changed := map[string]string{}
	for _, f := range modelFaults {
		var in []string
		for file, text := range sources {
			for range strings.Count(text, f.text) {
				in = append(in, file)
			}
		}
		if len(in) != 1 {
			t.Fatalf("the fault %q cannot be planted: its text is in %d places, %v. Give it a text that is in one place:\n%s",
				f.name, len(in), in, f.text)
		}
		planted := strings.ReplaceAll(f.planted, "FAULT", fmt.Sprintf("(plantedFault == %q)", f.name))
		sources[in[0]] = strings.ReplaceAll(sources[in[0]], f.text, planted)
		changed[in[0]] = sources[in[0]]
		dir := filepath.Dir(in[0])
		changed[filepath.Join(dir, "planted.go")] = "package " + filepath.Base(dir) + `

import "os"

var plantedFault = os.Getenv("PLANTED_FAULT")
`
	}
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range changed {
		path, err := filepath.Abs(file)
		check(err)
		replace[path] = filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		check(os.WriteFile(replace[path], []byte(text), 0o600))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	check(err)
	overlay = filepath.Join(dir, "overlay.json")
	check(os.WriteFile(overlay, text, 0o600))
	return overlay
}
