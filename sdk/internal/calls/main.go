// Command calls is a plugin that uses what the tests of package sdk do not: other
// pods, lists, values and metrics. Its fixtures are played to the same source as Go,
// as TinyGo's guest and as standard Go's, and to the same program in Rust and C, which is
// in testdata/abi/typed.
package main

import (
	"github.com/wasmproxy/wasmproxy/abi"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

func main() {} // never runs

func init() {
	wp.Plugin("calls", "1.0.0").Needs(wp.CapStoreRead, wp.CapResources, wp.CapCgroupRead, wp.CapCgroupWrite, wp.CapUpdateOthers,
		wp.CapArgs, wp.CapMounts, wp.CapDevices, wp.CapCDI, wp.CapUser, wp.CapImage, wp.CapStateKV, wp.CapMetric, wp.CapCRIRaw).
		OnTick(func(*wp.Tick) error { return calm("batch") }, 1000).
		OnPreStartContainer(func(*wp.PreStartContainer) error { return calm("own") }).
		OnPreCreateContainer(rearrange).
		OnPreUpdateContainerResources(slow).
		OnPostStartContainer(survey).
		OnPostExecSync(count).
		OnPrePullImage(func(e *wp.PrePullImage) error {
			return e.SetImage("mirror.example.com" + e.Image()[len("docker.io"):])
		}).
		OnPreExec(func(e *wp.PreExec) error {
			if v, _ := e.Pod().Label("shell"); v == "no" && e.TTY() && !e.Stdin() {
				return e.Reject(wp.PermissionDenied, "no terminals in "+e.Name())
			}
			return nil
		}).
		OnPreUpdatePodSandboxResources(func(p *wp.PreUpdatePodSandboxResources) error {
			p.Overhead().SetMemoryLimit(2 * p.Overhead().MemoryLimit())
			return p.Resources().SetCPUQuota(2 * p.Resources().CPUQuota())
		})
}

// calm slows the running containers of a namespace.
func calm(namespace string) error {
	for _, pod := range wp.Pods(namespace) {
		for _, c := range pod.Containers() {
			if c.State() != "running" || c.Pod().ID() != pod.ID() {
				continue
			}
			c.Resources().SetCPUShares(2)
			stat, err := c.ReadCgroup("cpu.stat")
			if wp.Handled(err, wp.ErrNotFound) {
				wp.Log(wp.LevelDebug, c.ID()+" has no cpu.stat")
				continue
			}
			wp.Log(wp.LevelInfo, c.ID()+" "+stat)
			c.SetCgroup("cpu.idle", "1")
		}
	}
	return nil
}

// survey reads two files of every container.
func survey(c *wp.PostStartContainer) error {
	all := wp.Containers()
	rows, err := wp.ReadCgroups(all, "cpu.stat", "memory.current")
	for i, row := range rows {
		line := all[i].ID()
		for _, file := range row {
			line += " " + file.Text
			if file.Errno != 0 {
				line += file.Errno.Error()
			}
		}
		wp.Log(wp.LevelInfo, line)
	}
	if err != nil {
		return err
	}
	return classes(c.Pod())
}

// classes reads a file of the QoS class of every pod.
func classes(own wp.Pod) error {
	for _, pod := range wp.Pods("") {
		min, err := pod.ReadQoSCgroup("memory.min")
		if wp.Handled(err, wp.ErrNotFound) {
			wp.Log(wp.LevelInfo, pod.ID()+" is in no QoS class")
			continue
		}
		wp.Log(wp.LevelInfo, pod.ID()+" has "+pod.QoS()+"'s "+min)
	}
	min, err := own.ReadQoSCgroup("memory.min")
	wp.Log(wp.LevelInfo, "its own has "+min)
	return err
}

// rearrange changes every list of a container by what it finds there.
func rearrange(c *wp.PreCreateContainer) error {
	c.SetCommand(c.Command()...)
	c.SetArgs(append(c.Args(), "--verbose")...)
	for _, m := range c.Mounts() {
		c.DeleteMount(m.ContainerPath)
		m.ContainerPath, m.RecursiveReadOnly, m.SELinuxRelabel = "/copy", true, true
		c.AddMount(m)
	}
	for _, d := range c.Devices() {
		d.ContainerPath = "/dev/c"
		c.AddDevice(d)
	}
	if names := c.CDIDevices(); len(names) == 1 && names[0] == "example.com/gpu=0" {
		c.AddCDIDevice("example.com/gpu=1")
	}
	for _, group := range c.SupplementalGroups() {
		gid, _ := wp.ParseInt(group)
		c.DeleteSupplementalGroup(gid)
		c.AddSupplementalGroup(gid + 1)
	}
	if uid, ok := c.RunAsUser(); uid != 0 || !ok {
		return wp.Failure("the user is not root")
	}
	if _, ok := c.RunAsGroup(); ok {
		return wp.Failure("there is a group")
	}
	return c.SetRunAsGroup(1000)
}

// slow slows a container as long as it has a label, and yields to plugins before it.
func slow(c *wp.PreUpdateContainerResources) error {
	if _, ok := c.Label("slow"); !ok {
		c.Resources().SetCPUPeriod(5000)
		c.Withdraw(abi.Resources+abi.CPUPeriod, "")
		c.Withdraw(abi.Resources+abi.CPUShares, "")
		return c.WithdrawCgroup("cpu.idle")
	}
	if wp.Handled(c.Resources().SetCPUShares(2), wp.ErrConflict) {
		wp.Log(wp.LevelInfo, wp.ConflictWith()+" was first")
	}
	return c.SetCgroup("cpu.idle", "1")
}

// count keeps and counts what is run.
func count(e *wp.PostExecSync) error {
	text, ok := wp.KVGet("count")
	if !ok {
		return nil
	}
	wp.KVSet("last", "nothing")
	n, ok := wp.ParseInt(text)
	if !ok {
		return wp.Failure("count is \"" + text + "\"")
	}
	command := ""
	for i, word := range e.ExecCommand() {
		if i > 0 {
			command += " "
		}
		command += word
	}
	wp.KVSet("count", wp.FormatInt(n+1))
	wp.KVSet("last", command)
	wp.KVDelete("old")
	if _, ok := wp.KVGet("old"); ok {
		return wp.Failure("old is still there")
	}
	wp.MetricAdd("commands_total{code=\""+wp.FormatInt(e.ExitCode())+"\"}", 1)
	wp.MetricSet("seconds", e.Timeout())
	wp.MetricObserve("size", int64(len(wp.Request())))
	first, again := make([]byte, 300), make([]byte, 300)
	wp.Random(first)
	wp.Random(again)
	if string(first) == string(again) || !wp.Logs(wp.LevelDebug) || !wp.HasFeature(wp.FeatureKV) {
		return wp.Failure("no random numbers, no debug lines, or no kv")
	}
	wp.Log(wp.LevelWarn, wp.FormatInt(wp.Now())+" "+wp.FormatInt(n/6)+" "+wp.FormatInt(wp.Node.CgroupVersion()))
	return nil
}
