package plugin

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// This file checks values of lists and sets, and of texts that are more than text.

// maxID is the largest user or group that Kubernetes takes.
const maxID = 1<<31 - 1

func checkID(v int64) (abi.Errno, string) {
	if v < 0 || v > maxID {
		return abi.Invalid, strconv.FormatInt(v, 10) + ": want a user or group, 0 to " + strconv.Itoa(maxID)
	}
	return abi.OK, ""
}

// checkArguments takes what execve does.
func checkArguments(c *Change) (abi.Errno, string) {
	if slices.ContainsFunc(c.Elements(), func(e string) bool { return strings.ContainsRune(e, 0) }) {
		return abi.Invalid, "want elements without NUL bytes"
	}
	return abi.OK, ""
}

// Names as their runtimes take them.
var (
	imageName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	handlerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	userName    = regexp.MustCompile(`^[^\x00-\x20:,]+$`)
	cdiDevice   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$`)
)

func checkText(c *Change) (abi.Errno, string) {
	ok, want := true, ""
	switch {
	case c.Kind() == abi.Pod && c.Field == abi.PodRuntimeHandler:
		ok, want = c.Text == "" || handlerName.MatchString(c.Text), "the name of a runtime handler: letters, digits and . _ -"
	case c.Kind() == abi.Event && c.Field == abi.EventImage, c.Kind() == abi.Container && c.Field == abi.ContainerImage:
		ok, want = imageName.MatchString(c.Text), "the name of an image"
	case c.Field == abi.ContainerWorkingDir:
		ok, want = c.Text == "" || clean(c.Text), "an absolute, clean path"
	case c.Field == abi.ContainerRunAsUsername:
		ok, want = c.Text == "" || userName.MatchString(c.Text), "the name of a user, without spaces, colons and commas"
	}
	if !ok {
		return abi.Invalid, quoted(c.Text) + ": want " + want
	}
	return abi.OK, ""
}

// clean reports whether a path is absolute and has only one way to be written.
func clean(p string) bool {
	return strings.HasPrefix(p, "/") && p == path.Clean(p) && !strings.ContainsRune(p, 0)
}

// checkElement checks what a Set is to take or to lose, and brings it into its
// normal form: with its key, and a record's own keys in their order.
func checkElement(c *Change) error {
	record := recordOf(c.Kind(), c.Field)
	if c.Op == DeleteElement {
		return checkKey(c)
	}
	if record == nil {
		c.Key = c.Text
		if reason := checkPlain(c); reason != "" {
			return refused(c, abi.Invalid, reason)
		}
		return nil
	}
	values, reason := readRecord(record, c.Text)
	if reason == "" {
		c.Key = values[record.Key]
		c.Text = string(abi.AppendRecord(nil, record.Keys, func(k string) string { return values[k] }))
		reason = checkRecord(c.Field, values)
	}
	if reason != "" {
		return refused(c, abi.Invalid, reason)
	}
	return nil
}

func checkKey(c *Change) error {
	if c.Key == "" || strings.ContainsRune(c.Key, 0) {
		return refused(c, abi.Invalid, "want a key of one byte or more, without NUL bytes")
	}
	return nil
}

// checkPlain checks an element that is a text, and says what is wrong with it.
func checkPlain(c *Change) string {
	switch c.Field {
	case abi.ContainerCDIDevices:
		if !cdiDevice.MatchString(c.Text) {
			return quoted(c.Text) + ": want vendor/class=name"
		}
	case abi.ContainerSupplementalGroups:
		n, err := strconv.ParseUint(c.Text, 10, 64)
		if err != nil || n > maxID || c.Text != strconv.FormatUint(n, 10) {
			return quoted(c.Text) + ": want the number of a group, 0 to " + strconv.Itoa(maxID)
		}
	}
	return ""
}

// readRecord returns a record by key. "false" is as good as nothing.
func readRecord(record *abi.RecordInfo, text string) (values map[string]string, reason string) {
	values = map[string]string{}
	ok := abi.EachEntry(text, func(k, v string) bool {
		_, twice := values[k]
		switch {
		case !slices.Contains(record.Keys, k):
			reason = "it has no key " + strconv.Quote(Printable(k, 64))
		case twice:
			reason = "it has " + k + " twice"
		}
		if v == "false" {
			v = ""
		}
		values[k] = v
		return reason == ""
	})
	if !ok {
		reason = "its encoding is not that of a record"
	}
	return values, reason
}

// checkRecord checks a mount or device, and says what is wrong with it.
func checkRecord(f abi.Field, values map[string]string) string {
	for _, key := range []string{"container_path", "host_path"} {
		if !clean(values[key]) {
			return key + " " + quoted(values[key]) + ": want an absolute, clean path"
		}
	}
	if values["container_path"] == "/" {
		return "container_path is the root of the container"
	}
	if f == abi.ContainerDevices {
		return checkPermissions(values["permissions"])
	}
	return checkMount(values)
}

func checkMount(values map[string]string) string {
	for _, key := range []string{"readonly", "selinux_relabel", "recursive_read_only"} {
		if v := values[key]; v != "" && v != "true" {
			return key + " " + quoted(v) + ": want true or false"
		}
	}
	switch values["propagation"] {
	case "", "private", "host_to_container", "bidirectional":
	default:
		return "propagation " + quoted(values["propagation"]) + ": want private, host_to_container or bidirectional"
	}
	private := values["propagation"] == "" || values["propagation"] == "private"
	if values["recursive_read_only"] != "" && (values["readonly"] == "" || !private) {
		return "recursive_read_only needs readonly and no propagation" // CRI says so
	}
	return ""
}

// checkPermissions takes those of the kernel's device cgroup.
func checkPermissions(p string) string {
	if p == "" || strings.Trim(p, "rwm") != "" || len(p) > 3 {
		return "permissions " + quoted(p) + ": want any of r, w and m"
	}
	return ""
}
