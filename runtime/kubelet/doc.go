// Package kubelet makes of a Pod the CRI requests that kubelet makes of it, so that
// plugins can be tried on the manifests that their authors have.
//
// It follows kubelet 1.37 with its default settings and feature gates: the QoS class
// and the cgroup parent, CPU shares and quota, limits, the OOM score, labels,
// annotations, environment, mounts, namespaces, overhead and runtime handler. Each
// formula names the function of k8s.io/kubernetes that it follows.
//
// It is no kubelet. What comes from elsewhere in the cluster or from the node is left
// out: values from secrets, config maps and services, DNS, devices of device plugins,
// profiles of seccomp, AppArmor and SELinux, and the digest of an image.
package kubelet
