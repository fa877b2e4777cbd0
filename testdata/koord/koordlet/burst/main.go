// Command burst runs koordlet's own CPU burst strategy, the package cpuburst of Koordinator's module, on recorded loads.
// The strategy reads and writes files in a directory of its own, and its clock ticks once for each second of
// the recording. What koordlet would learn from an API server, and what its collectors would have measured, is given to it:
// the collectors' formulas are applied to what its own reader reads.
//
// Usage: burst LOADS SCENARIOS
//
// It prints by scenario and load when a container's values change: the second, the CPU quota and the burst, in µs.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/koordinator-sh/koordinator/apis/extension"
	slov1alpha1 "github.com/koordinator-sh/koordinator/apis/slo/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/metriccache"
	collectors "github.com/koordinator-sh/koordinator/pkg/koordlet/metricsadvisor/framework"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/qosmanager/framework"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/qosmanager/plugins/cpuburst"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/resourceexecutor"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/statesinformer"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/util"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/util/system"
	"github.com/koordinator-sh/koordinator/pkg/util/sloconfig"
	"github.com/prometheus/prometheus/model/labels"
	promstorage "github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recording is loads.json.
type recording struct {
	Node  []int64 // usage in µs, each second
	Loads map[string]struct {
		Quota int64      // µs of each 100,000
		Stat  [][4]int64 // usage in µs, periods, throttled periods, throttled time in µs
	}
}

// scenario is how the strategy is configured while it sees all loads, each as the container of a pod.
type scenario struct {
	Name   string
	Config json.RawMessage // of the node
	CPUs   int
	Alone  bool                // nothing but the loads runs on the node
	Pods   map[string]struct { // by load
		Class      string
		Limit      int64 // µs of each 100,000, in place of the quota that it was recorded with
		Annotation json.RawMessage
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "burst:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) != 2 {
		return fmt.Errorf("want LOADS SCENARIOS, got %q", files)
	}
	var r recording
	var scenarios []scenario
	for i, to := range []any{&r, &scenarios} {
		text, err := os.ReadFile(files[i])
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, to); err != nil {
			return fmt.Errorf("%s: %w", files[i], err)
		}
	}
	system.UseCgroupsV2.Store(true)
	decisions := map[string]map[string][][3]int64{}
	for _, s := range scenarios {
		d, err := decide(r, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		decisions[s.Name] = d
	}
	out := json.NewEncoder(os.Stdout)
	return out.Encode(decisions)
}

// node is a node in a directory, with a pod for each load.
type node struct {
	recording
	scenario
	names   []string
	pods    []*statesinformer.PodMeta
	slo     *slov1alpha1.NodeSLO
	metrics *metrics
	reader  resourceexecutor.CgroupReader
	last    map[string]*system.CPUStatRaw
}

func decide(r recording, s scenario) (map[string][][3]int64, error) {
	dir, err := os.MkdirTemp("", "burst")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	system.Conf.CgroupRootDir = dir
	strategy := sloconfig.DefaultCPUBurstStrategy()
	if err := json.Unmarshal(s.Config, strategy); err != nil {
		return nil, err
	}
	n := &node{
		recording: r, scenario: s, names: slices.Sorted(maps.Keys(r.Loads)), reader: resourceexecutor.NewCgroupReader(),
		slo: &slov1alpha1.NodeSLO{Spec: slov1alpha1.NodeSLOSpec{CPUBurstStrategy: strategy}}, last: map[string]*system.CPUStatRaw{},
	}
	n.metrics = &metrics{cpus: s.CPUs, samples: map[string][]float64{}}
	if err := n.makePods(); err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	defer close(stop)
	burst := cpuburst.New(&framework.Options{
		CgroupReader: n.reader, StatesInformer: informer{nil, n}, MetricCache: n.metrics,
		Config: framework.NewDefaultConfig(), MetricAdvisorConfig: collectors.NewDefaultConfig(),
	})
	cpuburst.Init(burst, stop)
	decisions := map[string][][3]int64{}
	for second := range r.Node {
		if err := n.measure(second); err != nil {
			return nil, err
		}
		cpuburst.Step(burst)
		for i, name := range n.names {
			if err := n.normalize(i); err != nil {
				return nil, err
			}
			quota, burst, err := n.decision(i)
			if err != nil {
				return nil, err
			}
			all := decisions[name]
			if len(all) > 0 && all[len(all)-1][1] == quota && all[len(all)-1][2] == burst {
				continue
			}
			decisions[name] = append(all, [3]int64{int64(second), quota, burst})
		}
	}
	return decisions, nil
}

func (n *node) makePods() error {
	for _, name := range n.names {
		of := n.Pods[name]
		quota := cmp.Or(of.Limit, n.Loads[name].Quota)
		limit := *resource.NewMilliQuantity(quota/100, resource.DecimalSI)
		if of.Annotation == nil {
			of.Annotation = json.RawMessage("{}")
		}
		pod := &core.Pod{
			ObjectMeta: meta.ObjectMeta{
				Name: name, UID: types.UID(name), Labels: map[string]string{extension.LabelPodQoS: of.Class},
				Annotations: map[string]string{slov1alpha1.AnnotationPodCPUBurst: string(of.Annotation)},
			},
			Spec: core.PodSpec{Containers: []core.Container{{
				Name: "main", Resources: core.ResourceRequirements{Limits: core.ResourceList{"cpu": limit}, Requests: core.ResourceList{"cpu": limit}},
			}}},
			Status: core.PodStatus{Phase: core.PodRunning, ContainerStatuses: []core.ContainerStatus{{
				Name: "main", ContainerID: "containerd://" + name, State: core.ContainerState{Running: &core.ContainerStateRunning{}},
			}}},
		}
		m := &statesinformer.PodMeta{Pod: pod, CgroupDir: "kubepods.slice/pod" + name + ".slice"}
		n.pods = append(n.pods, m)
		group, err := n.group(len(n.pods) - 1)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(system.Conf.CgroupRootDir, group), 0o755); err != nil {
			return err
		}
		for _, g := range []string{"kubepods.slice", m.CgroupDir, group} {
			for file, text := range map[string]string{"cpu.max": fmt.Sprint(quota, " 100000"), "cpu.max.burst": "0"} {
				if err := os.WriteFile(filepath.Join(system.Conf.CgroupRootDir, g, file), []byte(text), 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// group returns the cgroup of a pod's container.
func (n *node) group(pod int) (string, error) {
	return util.GetContainerCgroupParentDir(n.pods[pod].CgroupDir, &n.pods[pod].Pod.Status.ContainerStatuses[0])
}

// measure does what koordlet's collectors do each second: they have no sample of the first.
func (n *node) measure(second int) error {
	n.metrics.second = second
	sum := 0.0
	for i, name := range n.names {
		group, err := n.group(i)
		if err != nil {
			return err
		}
		s := n.Loads[name].Stat[second]
		text := fmt.Sprintf("usage_usec %d\nuser_usec 0\nsystem_usec 0\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\nnr_bursts 0\nburst_usec 0\n", s[0], s[1], s[2], s[3])
		if err := os.WriteFile(filepath.Join(system.Conf.CgroupRootDir, group, "cpu.stat"), []byte(text), 0o644); err != nil {
			return err
		}
		now, err := n.reader.ReadCPUStat(group)
		if err != nil {
			return err
		}
		before := n.last[name]
		n.last[name] = now
		if before == nil {
			continue
		}
		used := float64(s[0]-n.Loads[name].Stat[second-1][0]) / 1e6
		id := n.pods[i].Pod.Status.ContainerStatuses[0].ContainerID
		n.metrics.add(metriccache.ContainerCPUThrottledMetric, metriccache.MetricPropertiesFunc.Container(id), system.CalcCPUThrottledRatio(now, before))
		n.metrics.add(metriccache.ContainerCPUUsageMetric, metriccache.MetricPropertiesFunc.Container(id), used)
		n.metrics.add(metriccache.PodCPUUsageMetric, metriccache.MetricPropertiesFunc.Pod(name), used)
		sum += used
	}
	if second == 0 {
		return nil
	}
	if !n.Alone {
		sum = float64(n.Node[second]-n.Node[second-1]) / 1e6
	}
	n.metrics.add(metriccache.NodeCPUUsageMetric, nil, sum)
	return nil
}

// normalize has cpu.max of a pod and its container as the kernel shows it: with the period.
func (n *node) normalize(pod int) error {
	group, err := n.group(pod)
	if err != nil {
		return err
	}
	for _, g := range []string{n.pods[pod].CgroupDir, group} {
		file := filepath.Join(system.Conf.CgroupRootDir, g, "cpu.max")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if words := strings.Fields(string(text)); len(words) == 1 {
			if err := os.WriteFile(file, []byte(words[0]+" 100000"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// decision reads what a container has now.
func (n *node) decision(pod int) (quota, burst int64, err error) {
	group, err := n.group(pod)
	if err != nil {
		return 0, 0, err
	}
	if quota, err = n.reader.ReadCPUQuota(group); err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile(filepath.Join(system.Conf.CgroupRootDir, group, "cpu.max.burst"))
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(text), &burst)
	return quota, burst, err
}

// informer knows the node's pods and configuration.
type informer struct {
	statesinformer.StatesInformer
	*node
}

func (i informer) GetNodeSLO() *slov1alpha1.NodeSLO      { return i.slo }
func (i informer) GetAllPods() []*statesinformer.PodMeta { return i.pods }

// metrics has a sample of each metric from the second second on.
type metrics struct {
	metriccache.MetricCache
	cpus, second int
	samples      map[string][]float64
}

func key(m metriccache.MetricMeta) string { return fmt.Sprint(m.GetKind(), m.GetProperties()) }

func (m *metrics) add(of metriccache.MetricResource, properties map[metriccache.MetricProperty]string, v float64) {
	q, err := of.BuildQueryMeta(properties)
	if err != nil {
		panic(err)
	}
	m.samples[key(q)] = append(m.samples[key(q)], v)
}

func (m *metrics) Get(any) (any, bool) {
	return &metriccache.NodeCPUInfo{ProcessorInfos: make([]util.ProcessorInfo, m.cpus)}, true
}

func (m *metrics) Querier(start, end time.Time) (metriccache.Querier, error) {
	return &querier{m, int(end.Sub(start) / time.Second)}, nil
}

// querier finds the samples of the last seconds.
type querier struct {
	*metrics
	seconds int
}

func (q *querier) Close() {}

func (q *querier) Query(m metriccache.MetricMeta, _ *metriccache.QueryHints, to metriccache.MetricResult) error {
	all := q.samples[key(m)]
	all = all[max(len(all)-q.seconds, 0):]
	if len(all) == 0 {
		return nil
	}
	var points []tsdbutil.Sample
	for i, v := range all {
		points = append(points, point{int64(q.second-len(all)+1+i) * 1_000, v})
	}
	return to.AddSeries(promstorage.NewListSeries(labels.Labels{}, points))
}

func (q *querier) QueryAndClose(m metriccache.MetricMeta, h *metriccache.QueryHints, to metriccache.MetricResult) error {
	return q.Query(m, h, to)
}

type point struct {
	t int64
	v float64
}

func (p point) T() int64   { return p.t }
func (p point) V() float64 { return p.v }
