package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

const (
	// requestKey and a container's name are the pod's annotation with the container's memory request.
	requestKey = "memory-qos.wasmproxy.io/request."

	pageSize = 4096 // kubelet's; a kernel with larger pages rounds down again
)

// none is the value of a file that is left as it is.
const none = -1

// values are those of a cgroup, in bytes.
type values struct {
	min, low, high int64
	ceiling        int64 // the most that high can be raised to
	burstable      bool  // of a container whose request is known, and may be less than its limit
}

// nothing leaves all files as they are.
var nothing = values{min: none, low: none, high: none}

// valuesOf computes a container's values, as generateLinuxContainerResources of kubelet v1.36.
func valuesOf(c wp.Container) (values, error) {
	v := nothing
	if !c.Resources().Reported() {
		once("resources", "of a container that is older than the proxy's process are not reported by this runtime: it gets no values")
		return v, nil
	}
	p, limit := c.Pod(), max(c.Resources().MemoryLimit(), 0)
	class := p.QoS()
	request, ok, err := requestOf(p, c, class, limit)
	if err != nil || !ok {
		return v, err
	}
	v.burstable = class != "Guaranteed"
	switch {
	case request == 0 || !config.reserve:
	case v.burstable:
		v.low = request
	default:
		v.min = request
	}
	if request == limit || !v.burstable {
		return v, nil
	}
	v.ceiling = limit
	if limit == 0 {
		v.ceiling = allocatable()
	}
	if high := throttled(request, v.ceiling); high > request {
		v.high = high
	}
	return v, nil
}

// throttled is the formula of KEP-2570: from the request on, a share of the way to the
// ceiling, in whole pages. The product of a large number and the factor would overflow.
func throttled(request, ceiling int64) int64 {
	room := max(ceiling-request, 0)
	share := room/whole*config.factor + room%whole*config.factor/whole
	return (request + share) / pageSize * pageSize
}

func allocatable() int64 {
	if config.allocatable > 0 {
		return config.allocatable
	}
	return wp.Node.Memory()
}

// requestOf returns a container's memory request in bytes, false if it cannot be told. CRI has no field
// for it.
func requestOf(p wp.Pod, c wp.Container, class string, limit int64) (request int64, ok bool, err error) {
	key := requestKey + c.Name()
	if text, ok := p.Annotation(key); ok {
		request, ok := wp.ParseInt(text)
		above := limit > 0 && request > limit
		if !ok || request < 0 || above {
			return 0, false, wp.Failure("annotation " + key + ": \"" + text + "\" is not a number of bytes from 0 to the container's limit")
		}
		return request, true, nil
	}
	score := c.Resources().OOMScoreAdj()
	switch {
	case class == "Guaranteed":
		return limit, limit > 0, nil
	case class == "BestEffort", score > 999, score < 3: // of no request, or of a critical pod
		return 0, false, nil
	}
	return requestByScore(score, wp.Node.Memory(), limit), true, nil
}

// requestByScore returns the least memory that a container of a Burstable pod may request:
// kubelet's score is 1000 less the request in thousandths of the node's memory, rounded
// down. 999 is also the score of a request of less. If the limit has the same score, it is
// taken for the request, so that a container that requests its limit is not throttled.
func requestByScore(score, memory, limit int64) int64 {
	if score == 999 {
		return 0
	}
	thousandth := memory / 1000
	request := thousandth * (1000 - score)
	if limit > 0 && limit < request+thousandth {
		return limit
	}
	return request
}

// sumOf adds up the protection of a pod's containers, also that which kubelet asks for. A container with a
// wrong annotation adds nothing of the plugin's.
func sumOf(p wp.Pod) values {
	sum := nothing
	if !config.reserve {
		return sum // what kubelet protects has kubelet's own sum, which is exact
	}
	for _, c := range p.Containers() {
		if ended(c.Container) {
			continue
		}
		v, _ := valuesOf(c.Container)
		r := c.Resources().Resources
		sum.min = plus(sum.min, protection(r, "memory.min", v.min))
		sum.low = plus(sum.low, protection(r, "memory.low", v.low))
	}
	sum.min = atMostLimit(p, sum.min)
	return sum
}

// protection returns the bytes of memory.min or memory.low that a container has: those of its request in
// unified, or else the plugin's own.
func protection(r wp.Resources, file string, own int64) int64 {
	if !requested(r, file) {
		return own
	}
	text, _ := r.Unified(file)
	if text == "max" {
		return unlimited
	}
	if bytes, ok := wp.ParseInt(text); ok {
		return bytes
	}
	return none
}

// atMostLimit bounds the memory.min of a Guaranteed pod. With resources of the pod, kubelet gives the pod's
// limit to each container that has none. That of the request is an old one after a resize of which the
// runtime was not told, so that the pod's cgroup comes first, which needs cgroup.read.
func atMostLimit(p wp.Pod, sum int64) int64 {
	if !p.Resources().Reported() {
		return sum
	}
	limit := p.Resources().MemoryLimit()
	if limit <= 0 || sum <= limit {
		return sum
	}
	text, _ := readFile(p.ReadCgroup, "memory.max")
	if now, ok := wp.ParseInt(text); ok {
		limit = now
	}
	return min(sum, limit)
}

// ended tells whether a container has ended. Its state may not say so if it has ended by itself, so
// that its cgroup is looked for, too, which needs cgroup.read.
func ended(c wp.Container) bool {
	state := c.State()
	if state != "running" {
		return state == "exited"
	}
	_, errno := readFile(c.ReadCgroup, "memory.current")
	return errno == wp.ErrNotFound
}

// readFile reads a file of a pod or container that the plugin can do without. errno is 0, or why there is no text.
func readFile(read func(file string) (string, error), file string) (text string, errno wp.Errno) {
	text, err := read(file)
	for _, errno := range [...]wp.Errno{wp.ErrNotFound, wp.ErrDenied, wp.ErrUnsupported} {
		if wp.Handled(err, errno) {
			return "", errno
		}
	}
	return text, 0
}

func plus(sum, v int64) int64 {
	switch {
	case v == none:
		return sum
	case sum == none:
		return v
	case sum > unlimited-v:
		return unlimited
	}
	return sum + v
}

// orDefault returns v with the kernel's defaults of what an earlier call may have set.
func (v values) orDefault() values {
	if v.burstable && config.reserve {
		v.low = max(v.low, 0)
	}
	if v.burstable && v.high == none {
		v.high = unlimited
	}
	return v
}

// keepRaised returns v with the memory.high that Tick has raised: at the formula's the container
// would stall at once. The next Tick lowers it where it may.
func (v values) keepRaised(c wp.Container) values {
	if !config.adapt || v.high == none {
		return v
	}
	text, _ := readFile(c.ReadCgroup, "memory.high")
	if high, ok := wp.ParseInt(text); ok && v.high < high && high <= v.ceiling {
		v.high = high
		known.add(c.ID(), raised)
		next.add(c.ID(), raised)
	}
	return v
}

const unlimited = 1<<63 - 1

// setter is SetCgroup of an event or an object. An interface would make the plugin larger.
type setter = func(file, value string) error

// apply asks for the values. A file that the request or an earlier plugin sets stays theirs.
func (v values) apply(r wp.Resources, to setter) error {
	for _, f := range [...]struct {
		name  string
		bytes int64
	}{{"memory.min", v.min}, {"memory.low", v.low}, {"memory.high", v.high}} {
		if f.bytes == none {
			continue
		}
		if err := set(r, to, f.name, f.bytes); err != nil {
			return err
		}
	}
	return nil
}

// requested reports whether unified asks for a value of a file. The kernel's own default does not count.
// kubelet 1.37 sends it for all containers: with the gate MemoryQoS and the policy None for memory.min and
// memory.low, and without the gate for memory.high.
func requested(r wp.Resources, file string) bool {
	if !r.Reported() {
		return false
	}
	value, ok := r.Unified(file)
	if file == "memory.high" {
		return ok && value != "max"
	}
	return ok && value != "0"
}

func set(r wp.Resources, to setter, file string, bytes int64) error {
	if requested(r, file) {
		once(file, "is left to kubelet's feature gate MemoryQoS or the plugin that asks for it in unified")
		return nil
	}
	value := "max"
	if bytes != unlimited {
		value = wp.FormatInt(bytes)
	}
	err := to(file, value)
	for _, reason := range [...]wp.Errno{wp.ErrUnsupported, wp.ErrConflict, wp.ErrDenied} {
		if wp.Handled(err, reason) {
			once(file, "is not set: "+reason.Error())
			return nil
		}
	}
	return err
}
