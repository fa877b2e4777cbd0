// Command audit is a plugin that counts what happens on a node, and changes nothing.
// README.md is its manual.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("audit", "1.0.0").
		Describe("counts the calls that change pods, containers and images, after they succeeded").
		License("Apache-2.0").
		Needs(wp.CapMetric).
		OnPostRunPodSandbox(counted[wp.PostRunPodSandbox]("RunPodSandbox")).
		OnPostStopPodSandbox(counted[wp.PostStopPodSandbox]("StopPodSandbox")).
		OnPostRemovePodSandbox(counted[wp.PostRemovePodSandbox]("RemovePodSandbox")).
		OnPostUpdatePodSandboxResources(counted[wp.PostUpdatePodSandboxResources]("UpdatePodSandboxResources")).
		OnPostCreateContainer(created).
		OnPostStartContainer(started).
		OnPostUpdateContainerResources(counted[wp.PostUpdateContainerResources]("UpdateContainerResources")).
		OnPostStopContainer(counted[wp.PostStopContainer]("StopContainer")).
		OnPostRemoveContainer(counted[wp.PostRemoveContainer]("RemoveContainer")).
		OnPostExec(counted[wp.PostExec]("Exec")).
		OnPostExecSync(ran).
		OnPostAttach(counted[wp.PostAttach]("Attach")).
		OnPostPortForward(counted[wp.PostPortForward]("PortForward")).
		OnPostCheckpointContainer(counted[wp.PostCheckpointContainer]("CheckpointContainer")).
		OnPostCheckpointPod(counted[wp.PostCheckpointPod]("CheckpointPod")).
		OnPostRestorePod(counted[wp.PostRestorePod]("RestorePod")).
		OnPostPullImage(counted[wp.PostPullImage]("PullImage")).
		OnPostRemoveImage(counted[wp.PostRemoveImage]("RemoveImage"))
}

func count(method string) error { return wp.MetricAdd(`calls_total{method="`+method+`"}`, 1) }

// counted is a handler that counts a method.
func counted[E any](method string) func(*E) error {
	return func(*E) error { return count(method) }
}

// created counts containers that take the place of one that has ended, too.
func created(c *wp.PostCreateContainer) error {
	if c.Attempt() > 0 {
		wp.MetricAdd("container_restarts_total", 1)
	}
	return count("CreateContainer")
}

// started counts containers by the class of their pods, which are four texts.
func started(c *wp.PostStartContainer) error {
	wp.MetricAdd(`containers_started_total{qos="`+c.Pod().QoS()+`"}`, 1)
	return count("StartContainer")
}

// ran counts probes and hooks of kubelet that ended with an error, too.
func ran(e *wp.PostExecSync) error {
	if e.ExitCode() != 0 {
		wp.MetricAdd("commands_failed_total", 1)
	}
	return count("ExecSync")
}
