// Package guest runs a Kubernetes node in a virtual machine: a kernel with cgroup v2
// alone, systemd as process 1, and by default the systemd driver for kubelet and containerd, as
// kubeadm sets a node up. QEMU emulates the CPU, so the machine needs no KVM and no
// cgroup v2 of its own, and all in the guest is some fifteen times slower.
//
// The tests run outside. They reach the guest through ssh alone: commands, and the
// sockets of wasmproxy, containerd and kubelet. The guest reaches nothing but the
// images, which the tests serve through ssh, too.
package guest

import "time"

const (
	// bootTimeout is how long the guest may take until it answers. It takes 20 s on two idle CPUs.
	bootTimeout = 10 * time.Minute
	// commandTimeout is how long a command in the guest may take.
	commandTimeout = 10 * time.Minute
	// readyTimeout is how long a pod may take. It takes 10 s on two idle CPUs.
	readyTimeout = 15 * time.Minute
)
