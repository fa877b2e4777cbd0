// Command clampedrunc runs the runc beside it, after changing in a new
// container's specification, or a new process's, what this machine may not allow. It raises the OOM
// score to its own: a lower one needs CAP_SYS_RESOURCE, and sandboxes want -998. It
// drops capabilities that it does not have itself, and limits of huge pages if their
// cgroup controller is not mounted. containerd does so or has a setting for it; CRI-O
// and Docker do not.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/capability"
)

func main() {
	err := clampedRunc()
	fmt.Fprintln(os.Stderr, "clampedrunc:", err)
	os.Exit(1)
}

// clampedRunc returns only if it fails.
func clampedRunc() error {
	if bundle := flag(os.Args, "--bundle", "-b"); bundle != "" {
		if err := change(filepath.Join(bundle, "config.json"), clampSpec); err != nil {
			return err
		}
	}
	if process := flag(os.Args, "--process", "-p"); process != "" { // of exec
		if err := change(process, clampProcess); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runc := filepath.Join(filepath.Dir(self), "runc")
	return fmt.Errorf("starting %s: %w", runc, syscall.Exec(runc, os.Args, os.Environ()))
}

// flag returns the value of a flag that is given under one of its names, else "".
func flag(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
		}
	}
	return ""
}

// object is a JSON object of which some members matter.
type object = map[string]json.RawMessage

// change changes a file that is an object.
func change(file string, clamp func(object) error) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // runc's own error says more
	}
	if err != nil {
		return err
	}
	content := object{}
	if err := json.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if err := clamp(content); err != nil {
		return fmt.Errorf("changing %s: %w", file, err)
	}
	if data, err = json.Marshal(content); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func clampSpec(spec object) error {
	return errors.Join(within(spec, "process", clampProcess), within(spec, "linux", clampHugePages))
}

// within changes a member that is an object.
func within(parent object, member string, change func(object) error) error {
	if parent[member] == nil {
		return nil
	}
	child := object{}
	err := json.Unmarshal(parent[member], &child)
	if err == nil {
		err = change(child)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	parent[member], err = json.Marshal(child)
	return err
}

func clampProcess(process object) error {
	return errors.Join(clampScore(process), within(process, "capabilities", clampCapabilities))
}

// clampCapabilities takes from each set, such as effective, what this process may not give.
func clampCapabilities(sets object) error {
	own, err := capability.NewPid2(0)
	if err == nil {
		err = own.Load()
	}
	if err != nil {
		return err
	}
	var allowed []string
	for _, c := range capability.ListKnown() {
		if own.Get(capability.BOUNDING, c) {
			allowed = append(allowed, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	for name, data := range sets {
		var set []string
		if err := json.Unmarshal(data, &set); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		set = slices.DeleteFunc(set, func(c string) bool { return !slices.Contains(allowed, c) })
		if sets[name], err = json.Marshal(set); err != nil {
			return err
		}
	}
	return nil
}

func clampScore(process object) error {
	lowest, err := ownScore()
	if err != nil || process["oomScoreAdj"] == nil { // not given: it is inherited
		return err
	}
	score, err := strconv.Atoi(string(process["oomScoreAdj"]))
	if err == nil && score < lowest {
		process["oomScoreAdj"] = json.RawMessage(strconv.Itoa(lowest))
	}
	return err
}

func clampHugePages(linux object) error {
	return within(linux, "resources", func(resources object) error {
		if _, err := os.Stat("/sys/fs/cgroup/hugetlb"); errors.Is(err, fs.ErrNotExist) {
			delete(resources, "hugepageLimits")
		}
		return nil
	})
}

func ownScore() (int, error) {
	data, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(data)))
}
