package plugin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// maxID is the largest user or group that Kubernetes takes.
const maxID = 1<<31 - 1

// Names as their runtimes take them.
var (
	imageName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	handlerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	userName    = regexp.MustCompile(`^[^\x00-\x20:,]+$`)
	cdiDevice   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$`)
)

// formats check a change's value. Records have checks of their own, in recordFormats.
var formats = [...]func(*scope, *Change) error{
	abi.ArgumentList:  checkArguments,
	abi.CDIName:       matching(cdiDevice.MatchString, "vendor/class=name"),
	abi.CgroupFiles:   (*scope).checkUnified,
	abi.CPUList:       matching(orEmpty(rules.IsList), "numbers and ranges such as 0-3,7"),
	abi.GroupList:     matching(isGroup, "the number of a group, 0 to "+strconv.Itoa(maxID)),
	abi.HandlerName:   matching(orEmpty(handlerName.MatchString), "the name of a runtime handler: letters, digits and . _ -"),
	abi.ID:            checkRange,
	abi.ImageName:     matching(imageName.MatchString, "the name of an image"),
	abi.KeysOfPlugins: checkMetadata,
	abi.MemoryBytes:   checkRange,
	abi.PageSizes:     checkHugepages,
	abi.ParentGroup:   checkCgroupParent,
	abi.Path:          matching(orEmpty(clean), "an absolute, clean path"),
	abi.Period:        checkRange,
	abi.Quota:         checkRange,
	abi.Score:         checkRange,
	abi.Shares:        checkRange,
	abi.UserName:      matching(orEmpty(userName.MatchString), "the name of a user, without spaces, colons and commas"),
	abi.Variables:     checkEnv,
}

// recordFormats say what is wrong with a record, "" if nothing is.
var recordFormats = map[abi.Format]func(values map[string]string) string{abi.DeviceRecord: checkDevice, abi.MountRecord: checkMount}

func matching(fits func(string) bool, want string) func(*scope, *Change) error {
	return func(_ *scope, c *Change) error {
		if fits(c.Text) {
			return nil
		}
		return refused(c, abi.Invalid, quoted(c.Text)+": want "+want)
	}
}

func orEmpty(fits func(string) bool) func(string) bool {
	return func(s string) bool { return s == "" || fits(s) }
}

func isGroup(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n <= maxID && s == strconv.FormatUint(n, 10)
}

// checkRange holds a number to the range of its field.
func checkRange(_ *scope, c *Change) error {
	info := FieldOf(c.Kind(), c.Field)
	least, most, unlimited := info.Format.Range()
	within := c.Int >= least && c.Int <= most
	if within || c.Int == -1 && unlimited {
		return nil
	}
	reason := fmt.Sprintf("%d: want %d to %d", c.Int, least, most)
	switch {
	case info.Format == abi.ID:
		reason = fmt.Sprintf("%d: want a user or group, %d to %d", c.Int, least, most)
	case info.Unit != "":
		reason += " " + info.Unit
	}
	if unlimited {
		reason += ", or -1 for no limit"
	}
	return refused(c, abi.Invalid, reason)
}

// checkArguments takes what execve does.
func checkArguments(_ *scope, c *Change) error {
	clean := true
	abi.EachElement(c.Text, func(e string) bool {
		clean = !strings.ContainsRune(e, 0)
		return clean
	})
	if !clean {
		return refused(c, abi.Invalid, "want elements without NUL bytes")
	}
	return nil
}

func checkHugepages(_ *scope, c *Change) error {
	if !rules.IsPageSize(c.Key) {
		return refused(c, abi.Invalid, "want a page size such as 2MB or 1GB")
	}
	if _, err := strconv.ParseUint(c.Text, 10, 64); c.Op == SetEntry && err != nil {
		return refused(c, abi.Invalid, quoted(c.Text)+": want a number of bytes")
	}
	return nil
}

// checkUnified holds a key of the unified map to the same table as cgroup_set: the runtime
// writes it to the container's cgroup as root, whatever it is.
func (s *scope) checkUnified(c *Change) error {
	if s.cgroupVersion == 0 {
		return refused(c, abi.Unsupported, "unified needs cgroup v2")
	}
	return s.parse(c, rules.Unified)
}

func checkEnv(_ *scope, c *Change) error {
	if c.Key == "" || strings.ContainsAny(c.Key, "=\x00") {
		return refused(c, abi.Invalid, "want a name of an environment variable, without = and NUL bytes")
	}
	if strings.ContainsRune(c.Text, 0) {
		return refused(c, abi.Invalid, "want a value without NUL bytes")
	}
	return nil
}

func checkMetadata(_ *scope, c *Change) error {
	switch {
	case c.Key == "" || strings.ContainsRune(c.Key, 0):
		return refused(c, abi.Invalid, wantKey)
	case strings.HasPrefix(c.Key, reserved):
		return refused(c, abi.Denied, "keys that begin with "+reserved+" are kubelet's")
	}
	return nil
}
