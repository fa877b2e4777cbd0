// Package cgroupfs reads the kernel's cgroup files of containers and pods. It knows which of them
// say what a group is set to, and which only count what happened. Tests name the files and values
// of version 1, for which [Check] looks at those of version 2 where the machine has these.
package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mount is where the hierarchies are mounted, one directory for each.
const mount = "/sys/fs/cgroup"

// Version is the machine's cgroup version, 2 if it has no hierarchy of version 1.
func Version() int {
	if _, err := os.Stat(mount + "/cgroup.controllers"); err == nil {
		return 2
	}
	return 1
}

// Find returns the path of the cgroup of this name below the root of the hierarchies.
func Find(name string) (string, error) {
	hierarchy := mount + "/cpu" // a container is at the same path in all
	if Version() == 2 {
		hierarchy = mount
	}
	var found string
	err := filepath.WalkDir(hierarchy, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err == nil && d.IsDir() && d.Name() == name:
			found = strings.TrimPrefix(path, hierarchy)
			return filepath.SkipAll
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("looking for the cgroup %s: %w", name, err)
	}
	if found == "" {
		return "", fmt.Errorf("no cgroup is called %s", name)
	}
	return found, nil
}

// Inner returns the cgroup in which crun has the processes of a container of this one on version 2; else this one.
func Inner(cgroup string) string {
	inner := cgroup + "/container"
	if _, err := os.Stat(mount + inner); err == nil {
		return inner
	}
	return cgroup
}

// Read returns what a file of a cgroup holds, without the last newline. In version 1 file is
// the controller's hierarchy and the file's name: cpu/cpu.shares.
func Read(cgroup, file string) (string, error) {
	data, err := os.ReadFile(resolve(cgroup, file))
	return strings.TrimSpace(string(data)), err
}

// Check returns an error unless a file of version 1 has this value, or in version 2 its equivalent.
func Check(cgroup, file, want string) error {
	if Version() == 2 {
		file, want = equivalent(file, want)
	}
	if got, err := Read(cgroup, file); err != nil || got != want {
		return fmt.Errorf("%s of %s is %q, want %q (%v)", file, cgroup, got, want, err)
	}
	return nil
}

// Write writes a value to a file of a cgroup.
func Write(cgroup, file, value string) error {
	return os.WriteFile(resolve(cgroup, file), []byte(value), 0)
}

func resolve(cgroup, file string) string {
	hierarchy, name := path.Split(file)
	if Version() == 2 {
		hierarchy = ""
	}
	return filepath.Join(mount, hierarchy, cgroup, name)
}

// Settings returns what every file of a cgroup holds, in all hierarchies, by
// its name as for Read, but for those that count and those that nobody may read.
func Settings(cgroup string) (map[string]string, error) {
	hierarchies := "*"
	if Version() == 2 {
		hierarchies = ""
	}
	files, err := filepath.Glob(filepath.Join(mount, hierarchies, cgroup, "*"))
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, file := range files {
		info, err := os.Lstat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Mode()&0o444 == 0 || counts(info.Name()) {
			continue
		}
		name := info.Name()
		if Version() == 1 {
			hierarchy, _, _ := strings.Cut(strings.TrimPrefix(file, mount+"/"), "/")
			name = path.Join(hierarchy, name)
		}
		data, err := os.ReadFile(file)
		if err != nil { // some cannot be read in some states, and that is their setting
			data = []byte(errors.Unwrap(err).Error())
		}
		settings[name] = string(data)
	}
	if len(settings) == 0 {
		return nil, fmt.Errorf("the cgroup %s has no files", cgroup)
	}
	return settings, nil
}
