package remote

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// numbers are the fields of LinuxContainerResources that are numbers, and which
// values of a response count. The protocol has no presence, so that zero may mean
// "not set" or "set to zero".
var numbers = []struct {
	field abi.Field
	of    func(*pb.LinuxContainerResources) *int64
	takes func(int64) bool
}{
	{abi.CPUPeriod, func(r *pb.LinuxContainerResources) *int64 { return &r.CpuPeriod }, positive},
	{abi.CPUQuota, func(r *pb.LinuxContainerResources) *int64 { return &r.CpuQuota }, nonZero}, // -1 is unlimited
	{abi.CPUShares, func(r *pb.LinuxContainerResources) *int64 { return &r.CpuShares }, positive},
	{abi.MemoryLimit, func(r *pb.LinuxContainerResources) *int64 { return &r.MemoryLimitInBytes }, limit},
	{abi.OOMScoreAdj, func(r *pb.LinuxContainerResources) *int64 { return &r.OomScoreAdj }, any64},
	{abi.MemorySwap, func(r *pb.LinuxContainerResources) *int64 { return &r.MemorySwapLimitInBytes }, limit},
}

func positive(n int64) bool { return n > 0 }
func limit(n int64) bool    { return n > 0 || n == -1 } // -1 is unlimited, which the incumbent ignores
func nonZero(n int64) bool  { return n != 0 }
func any64(int64) bool      { return true }

// texts are those that are strings.
var texts = []struct {
	field abi.Field
	of    func(*pb.LinuxContainerResources) *string
}{
	{abi.CpusetCpus, func(r *pb.LinuxContainerResources) *string { return &r.CpusetCpus }},
	{abi.CpusetMems, func(r *pb.LinuxContainerResources) *string { return &r.CpusetMems }},
}

// resources reads the event's fields from base on: abi.Resources or abi.Overhead.
func (p *Plugin) resources(ev plugin.Event, o abi.Object, base abi.Field) *pb.LinuxContainerResources {
	r := &pb.LinuxContainerResources{Unified: p.entries(ev, o, base+abi.Unified)}
	for _, n := range numbers {
		*n.of(r) = number(ev, o, base+n.field)
	}
	for _, t := range texts {
		*t.of(r) = text(ev, o, base+t.field)
	}
	limits, errno := ev.Entries(o, base+abi.HugepageLimits)
	if errno != abi.OK {
		return r
	}
	for size, bytes := range limits {
		if limit, err := strconv.ParseUint(bytes, 10, 64); err == nil {
			r.HugepageLimits = append(r.HugepageLimits, &pb.HugepageLimit{PageSize: size, Limit: limit})
		}
	}
	return r
}

// nonEmpty returns nil for a message that says nothing.
func nonEmpty(r *pb.LinuxContainerResources) *pb.LinuxContainerResources {
	if proto.Size(r) == 0 {
		return nil
	}
	return r
}

// hugepages returns limits as the event has them.
func hugepages(limits []*pb.HugepageLimit) map[string]string {
	m := make(map[string]string, len(limits))
	for _, l := range limits {
		m[l.GetPageSize()] = strconv.FormatUint(l.GetLimit(), 10)
	}
	return m
}

// echoes reports whether got was made from sent by writing over a copy of it,
// as koordlet does, rather than from nothing. Then a cpuset or score that sent
// has and got lacks was emptied on purpose; else it just was not mentioned. The
// sign of a copy: nothing else is missing, and something was left unchanged.
func echoes(sent, got *pb.LinuxContainerResources) bool {
	unchanged := false
	for _, n := range numbers {
		had, has := *n.of(sent), *n.of(got)
		if had != 0 && has == 0 && n.field != abi.OOMScoreAdj {
			return false
		}
		unchanged = unchanged || had != 0 && has == had
	}
	for _, t := range texts {
		unchanged = unchanged || *t.of(sent) != "" && *t.of(sent) == *t.of(got)
	}
	return unchanged && len(got.HugepageLimits) >= len(sent.HugepageLimits) && len(got.Unified) >= len(sent.Unified)
}
