package plugin

import (
	"strconv"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Op is what a Change does.
type Op uint8

// The operations.
const (
	SetInt64    Op = iota + 1 // Field := Int
	SetText                   // Field := Text
	SetEntry                  // Field[Key] := Text
	DeleteEntry               // delete Field[Key]
	WriteFile                 // cgroup file Key := Text
)

// Change is one thing that a plugin asks for.
type Change struct {
	Op     Op
	Object abi.Object // abi.Pod or abi.Container
	Field  abi.Field  // 0 with WriteFile
	Key    string     // the map's key, or the cgroup file by its v2 name
	Int    int64
	Text   string
}

// Target names what the change touches, such as
// container.annotations["example.com/tier"] or container cgroup file cpu.idle.
func (c Change) Target() string {
	if c.Op == WriteFile {
		return c.Object.String() + " cgroup file " + c.Key
	}
	info, _ := abi.FieldOf(c.Object, c.Field)
	name := c.Object.String() + "." + info.Name
	if info.Type == abi.Map {
		name += "[" + strconv.Quote(c.Key) + "]"
	}
	return name
}

// size is how many bytes the change adds to a request at most.
func (c Change) size() int { return len(c.Key) + len(c.Text) }

// Value returns what the change sets, for logs: at most 1 KiB of it; "" where it
// deletes, and nothing of an environment variable, which may be a secret.
func (c Change) Value() string {
	switch {
	case c.Op == SetInt64:
		return strconv.FormatInt(c.Int, 10)
	case c.isEnv():
		return "(hidden)"
	}
	return printable(c.Text, maxReason)
}

func (c Change) isEnv() bool { return c.Object == abi.Container && c.Field == abi.ContainerEnv }

// slot is what a change is a claim on. A CRI field, its key of the unified map
// and its cgroup file are one slot, whichever way a plugin reaches it.
type slot struct {
	object abi.Object
	field  abi.Field
	key    string
}

// unifiedFields maps cgroup v2 files to the CRI fields that set them.
var unifiedFields = map[string][]abi.Field{
	"cpu.weight":      {abi.CPUShares},
	"cpu.max":         {abi.CPUQuota, abi.CPUPeriod},
	"memory.max":      {abi.MemoryLimit},
	"memory.swap.max": {abi.MemorySwap},
	"cpuset.cpus":     {abi.CpusetCpus},
	"cpuset.mems":     {abi.CpusetMems},
}

// slots returns what the change claims: one slot, or two for cpu.max.
func (c Change) slots() []slot {
	file := c.Op == WriteFile || c.Field == abi.Resources+abi.Unified
	if !file {
		return []slot{{c.Object, c.Field, c.Key}}
	}
	fields := unifiedFields[c.Key]
	if fields == nil {
		return []slot{{c.Object, 0, c.Key}}
	}
	claims := make([]slot, len(fields))
	for i, f := range fields {
		claims[i] = slot{c.Object, abi.Resources + f, ""}
	}
	return claims
}

// agrees reports whether two claims on one slot want the same. What is written
// by different ways to one slot never agrees, except the unified map and the
// cgroup file, which take the same text.
func (c Change) agrees(d Change) bool {
	return c.family() == d.family() && c.Int == d.Int && c.Text == d.Text
}

func (c Change) family() Op {
	if c.Op == SetEntry && c.Field == abi.Resources+abi.Unified {
		return WriteFile
	}
	return c.Op
}
