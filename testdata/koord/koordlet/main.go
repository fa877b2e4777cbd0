// Command koordlet is the hook server of Koordinator's agent, and no more of it:
// its own proxyserver package, with the hooks that it runs by default. It
// listens, and then registers itself in hookserver.d, as koordlet does.
//
// What is left out is what needs an API server. The rule that koordlet would
// read of the node's topology there is given: kubelet has the static CPU policy,
// upon which koordlet empties the cpuset of BestEffort pods.
//
// Usage: koordlet SOCKET HOOKDIR CGROUPROOT
//
// CGROUPROOT stands for /sys/fs/cgroup: koordlet writes cgroup files besides.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/resourceexecutor"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/hooks"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/hooks/batchresource"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/hooks/cpuset"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/hooks/groupidentity"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/proxyserver"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/runtimehooks/rule"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/statesinformer"
	"github.com/koordinator-sh/koordinator/pkg/koordlet/util/system"
	"github.com/koordinator-sh/koordinator/pkg/runtimeproxy/config"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "koordlet:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want SOCKET HOOKDIR CGROUPROOT, got %q", args)
	}
	socket, hookDir := args[0], args[1]
	system.Conf.CgroupRootDir = args[2]
	stop := make(chan struct{})
	executor := resourceexecutor.NewResourceUpdateExecutor()
	go executor.Run(stop)
	registerHooks(hooks.Options{Reader: resourceexecutor.NewCgroupReader(), Executor: executor})
	server, err := proxyserver.NewServer(proxyserver.Options{
		Network: "unix", Address: socket, HostEndpoint: doubled(socket), ConfigFilePath: hookDir,
		FailurePolicy: config.PolicyIgnore, PluginFailurePolicy: config.PolicyIgnore, Executor: executor,
	})
	if err != nil {
		return err
	}
	for _, step := range []func() error{server.Setup, server.Start, server.Register} {
		if err := step(); err != nil {
			return err
		}
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	close(stop)
	server.Stop()
	return nil
}

// registerHooks registers what koordlet's feature gates have on by default.
func registerHooks(o hooks.Options) {
	groupidentity.Object().Register(o)
	cpuset.Object().Register(o)
	batchresource.Object().Register(o)
	rule.UpdateRules(statesinformer.RegisterTypeNodeTopology, &topology.NodeResourceTopology{ObjectMeta: meta.ObjectMeta{
		Annotations: map[string]string{
			extension.AnnotationKubeletCPUManagerPolicy: `{"policy":"static"}`,
			extension.AnnotationNodeCPUSharedPools:      `[{"socket":0,"node":0,"cpuset":"0-1"}]`,
		},
	}}, &statesinformer.CallbackTarget{})
}

// doubled has two slashes before the last element, as koordlet's default
// manifest makes it.
func doubled(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:i] + "/" + path[i:]
}
