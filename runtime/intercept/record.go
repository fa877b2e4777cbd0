package intercept

import (
	"context"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// idOf is the ledger's name of a pod or container.
func (i *interceptor) idOf(o crifield.Object) ledger.ID {
	if o.Container == nil {
		return ledger.ID{Pod: uidOf(o.Pod.Config)}
	}
	pod, ok := i.Store.Pod(o.Container.PodID)
	if !ok {
		return ledger.ID{Pod: "sandbox " + o.Container.PodID, Container: o.Container.ID}
	}
	return ledger.ID{Pod: uidOf(pod.Config), Container: o.Container.ID}
}

// uidOf returns the UID of a pod, or another text that tells it apart, since not every client
// of CRI gives its pods one.
func uidOf(config *runtimeapi.PodSandboxConfig) string {
	if uid := config.GetMetadata().GetUid(); uid != "" {
		return uid
	}
	return nameOf(config)
}

// podOf returns the newest sandbox of a pod by the ledger's name of it.
func (i *interceptor) podOf(uid string) (*crifield.Pod, bool) {
	if p, ok := i.Store.FindPodByUID(uid); ok {
		return crifield.PodOf(p), true
	}
	for _, p := range i.Store.Pods() {
		if p.Config.GetMetadata().GetUid() == "" && nameOf(p.Config) == uid {
			return crifield.PodOf(p), true
		}
	}
	return nil, false
}

// about names an object of the ledger for an event.
func (i *interceptor) about(id ledger.ID, o crifield.Object) (a observe.Object) {
	pod := o.Pod
	if o.Container != nil {
		a.Container, a.ContainerID = o.Container.Config.GetMetadata().GetName(), o.Container.ID
		if p, ok := i.Store.Pod(o.Container.PodID); ok {
			pod = crifield.PodOf(p)
		}
	} else if a.ContainerID = id.Container; pod == nil {
		a.PodID = id.Pod
	}
	if pod != nil {
		meta := pod.Config.GetMetadata()
		a.Namespace, a.Pod, a.PodID = meta.GetNamespace(), meta.GetName(), pod.ID
	}
	return a
}

// Settle brings the ledger and the cgroup files to where the container runtime is, after it was
// connected: the records of objects that are gone are dropped, and values that were overwritten
// meanwhile are written again. The store has all pods and containers of the runtime.
func Settle(ctx context.Context, o Options) {
	i := &interceptor{Options: o}
	DropGone(o)
	for ids := range byPod(i.Ledger.Objects()) {
		for _, id := range ids {
			i.Ledger.Note(id, "a new connection to the container runtime")
		}
		i.settle(ctx, ids, ledger.Expected)
	}
}

// DropGone drops the records of objects that the store lacks, which has all pods and containers of
// the runtime. First, records of containers follow pods that have another name than when they were
// made: Docker has made the name up, or its user has changed it.
func DropGone(o Options) {
	i := &interceptor{Options: o}
	for _, id := range i.Ledger.Objects() {
		c, _ := i.Store.Container(id.Container)
		if pod, ok := i.Store.Pod(c.PodID); ok && c.ID == id.Container {
			i.Ledger.Move(id, uidOf(pod.Config))
		}
	}
	i.Ledger.Retain(i.known, i.hasGroup)
}

// ScanParts is in how many scans each pod is looked at once. To read ten files of each of 2,000 containers takes
// 150 ms of a processor, and on cgroup v1 twice that.
const ScanParts = 3

// Scan looks for values that something else has overwritten, and writes them again, and asks
// the runtime again for what it has refused. It ends early if ctx is done.
func Scan(ctx context.Context, o Options) {
	(&interceptor{Options: o}).scan(ctx, func(ledger.ID) bool { return true })
}

// ScanPart is Scan of one pod in ScanParts, others with each number, and of all objects of which something is not
// as it should be.
func ScanPart(ctx context.Context, o Options, number uint64) {
	i := &interceptor{Options: o}
	i.scan(ctx, func(id ledger.ID) bool {
		return crc32.ChecksumIEEE([]byte(id.Pod))%ScanParts == uint32(number%ScanParts) || i.Ledger.Unsettled(id)
	})
}

func (i *interceptor) scan(ctx context.Context, due func(ledger.ID) bool) {
	for ids := range byPod(i.Ledger.Objects()) {
		if ids = slices.DeleteFunc(ids, func(id ledger.ID) bool { return !due(id) }); len(ids) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		i.settle(ctx, ids, ledger.Drift)
	}
}

// AfterReload repairs the values that systemd has overwritten with its own when it was reloaded:
// those of files that it does not know. It ends early if ctx is done.
func AfterReload(ctx context.Context, o Options) {
	i := &interceptor{Options: o}
	for _, id := range i.Ledger.Objects() {
		if ctx.Err() != nil {
			return
		}
		i.Ledger.Note(id, "a reload of systemd")
		i.repair(ctx, id, ledger.Expected)
		i.resetFields(ctx, id)
	}
}

// Withdraw ends the wishes for which end returns true, and has kubelet's values written back.
func Withdraw(ctx context.Context, o Options, end func(ledger.ID, ledger.Target, ledger.Wish) bool) {
	(&interceptor{Options: o}).withdraw(ctx, end)
}

func (i *interceptor) withdraw(ctx context.Context, end func(ledger.ID, ledger.Target, ledger.Wish) bool) {
	for ids := range byPod(i.Ledger.Withdraw(end)) {
		i.settle(ctx, ids, ledger.Expected)
	}
}

// byPod returns the objects of one pod after the other. They are sorted by pod.
func byPod(ids []ledger.ID) iter.Seq[[]ledger.ID] {
	return func(yield func([]ledger.ID) bool) {
		for len(ids) > 0 {
			n := slices.IndexFunc(ids, func(id ledger.ID) bool { return id.Pod != ids[0].Pod })
			if n < 0 {
				n = len(ids)
			}
			if !yield(ids[:n]) {
				return
			}
			ids = ids[n:]
		}
	}
}

// settle has the values of objects of one pod be what the ledger says: in their files, and in the
// runtime where no plugin wants another than kubelet's any more. When cpu.idle ends, the runtime
// is asked for the container's share, too, since some forget it. The limits of the pod follow once.
func (i *interceptor) settle(ctx context.Context, ids []ledger.ID, why ledger.Why) {
	raise := false
	for _, id := range ids {
		done := i.repair(ctx, id, why)
		if slices.ContainsFunc(done, func(d ledger.Done) bool { return d.Err == nil && endsIdle(d.Write) }) {
			c, _ := i.Store.Container(id.Container)
			if shares := c.Config.GetLinux().GetResources().GetCpuShares(); shares != 0 {
				i.Ledger.Lost(id, fieldTarget(abi.Resources+abi.CPUShares, ""), strconv.FormatInt(shares, 10))
			}
		}
		if why != ledger.Drift || !i.Ledger.Rests(id) {
			raise = !i.resetFields(ctx, id) || raise
		}
	}
	if raise {
		i.liftPod(ctx, ids[0].Pod)
	}
}
