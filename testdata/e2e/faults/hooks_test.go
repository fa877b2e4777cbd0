package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// followed are the methods whose hooks are counted.
var followed = []string{
	"RunPodSandbox", "CreateContainer", "StartContainer", "UpdateContainerResources",
	"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox",
}

// hookCounts is how often the witness was called, by hook, for each pod.
type hookCounts map[string]map[string]int

func (c *cluster) hookCounts(t *testing.T) hookCounts {
	t.Helper()
	counts := hookCounts{}
	c.proxy.AllRecords(t, "plugin called", func(line []byte) error {
		var r struct{ Plugin, Hook, Pod string }
		err := json.Unmarshal(line, &r)
		if r.Plugin != witness || r.Pod == "" {
			return err
		}
		if counts[r.Pod] == nil {
			counts[r.Pod] = map[string]int{}
		}
		counts[r.Pod][r.Hook]++
		return err
	})
	return counts
}

// checkHooks compares the hooks of a pod with its calls. Each call that reached the runtime had its
// pre hook. Each success that kubelet got had its post hook, unless the proxy was killed before it
// ran; no other call had one.
func (c *cluster) checkHooks(counts hookCounts, pod string, killed bool) error {
	var errs []error
	for _, method := range followed {
		behind, before := c.back.Count(method, pod), c.front.Count(method, pod)
		pre, post := counts[pod]["Pre"+method], counts[pod]["Post"+method]
		if pre < behind.Asked || pre > before.Asked {
			errs = append(errs, fmt.Errorf("Pre%s ran %d times for %d calls of kubelet, of which %d reached the runtime", method, pre, before.Asked, behind.Asked))
		}
		least := before.Received
		if killed {
			least--
		}
		if post < least || post > behind.Answered {
			errs = append(errs, fmt.Errorf("Post%s ran %d times for %d successes of the runtime, of which kubelet got %d", method, post, behind.Answered, before.Received))
		}
	}
	return errors.Join(errs...)
}
