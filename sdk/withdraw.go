package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Withdraw takes back what the plugin has set of a field of the container, such as [abi.ContainerDevices], and of which
// entry or element, by its key; key is "" for fields that have none. What was set in this call is as if it had not been
// set. A resource that the plugin holds from an earlier event goes back to kubelet's value. Others may set it then. It is no
// error if there is nothing to take back.
func (c Container) Withdraw(field abi.Field, key string) error {
	return withdraw("Withdraw", c.object(), field, key)
}

// WithdrawCgroup takes back what the plugin has asked for of a file of the container's cgroup, in this call or an earlier
// one.
func (c Container) WithdrawCgroup(file string) error {
	return withdraw("WithdrawCgroup", c.object(), 0, file)
}

// Withdraw takes back what the plugin has set of a field of the pod, such as [abi.PodLabels], likewise.
func (p Pod) Withdraw(field abi.Field, key string) error {
	return withdraw("Withdraw", p.object(), field, key)
}

// WithdrawCgroup takes back what the plugin has asked for of a file of the pod's cgroup, likewise.
func (p Pod) WithdrawCgroup(file string) error {
	return withdraw("WithdrawCgroup", p.object(), 0, file)
}

// WithdrawImage takes back what the plugin has set of the image in this call.
func (*PrePullImage) WithdrawImage() error {
	return withdraw("WithdrawImage", abi.Event, abi.EventImage, "")
}

func withdraw(op string, o abi.Object, f abi.Field, key string) error {
	return check(op, key, hostWithdraw(o, f, key))
}

// ConflictWith returns the id of the plugin that has set what the last method that was refused with [ErrConflict] was to
// set; "" if none was in this call.
func ConflictWith() string {
	n := hostConflict(free, room)
	for ; n > room; n = hostConflict(free, room) {
		refill(n)
	}
	missing("ConflictWith", "", n)
	return cut(n)
}
