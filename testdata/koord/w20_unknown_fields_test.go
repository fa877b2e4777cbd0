package koord_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW20UnknownFields sends fields that a newer kubelet may know, inside
// linux.resources, through a hook that changes the resources.
// koord-runtime-proxy makes these anew of the fields that it knows.
func TestW20UnknownFields(t *testing.T) {
	newer := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "of a newer CRI")
	shares := answering(&containerResponse{ContainerResources: &hookResourcesMessage{CpuShares: 77}})
	tests(t, map[string]scenario{
		"create": {incumbent: "unknown fields: got ,", run: func(n *node) error {
			config := containerConfig()
			config.Linux.Resources.ProtoReflect().SetUnknown(newer)
			got, err := n.created(shares, config)
			return join(err,
				want("shares", got.GetLinux().GetResources().GetCpuShares(), int64(77)),
				want("unknown fields", string(got.GetLinux().GetResources().ProtoReflect().GetUnknown()), string(newer)))
		}},
		"update": {incumbent: "unknown fields: got ,", run: func(n *node) error {
			update := &cri.LinuxContainerResources{CpuShares: 256}
			update.ProtoReflect().SetUnknown(newer)
			got, err := n.updated(shares, update, nil)
			return join(err,
				want("shares", got.GetLinux().GetCpuShares(), int64(77)),
				want("unknown fields", string(got.GetLinux().ProtoReflect().GetUnknown()), string(newer)))
		}},
	})
}
