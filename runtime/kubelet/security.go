package kubelet

import (
	"cmp"
	"path"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seccompRoot is where kubelet has profiles of seccomp.
const seccompRoot = "/var/lib/kubelet/seccomp"

// seccomp is getSeccompProfile of pkg/kubelet/kuberuntime/helpers.go, without kubelet's seccompDefault.
func seccomp(p *Profile) *runtimeapi.SecurityProfile {
	if p == nil {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	made := p.message()
	if made.LocalhostRef != "" {
		made.LocalhostRef = path.Join(seccompRoot, made.LocalhostRef)
	}
	return made
}

// apparmor is getAppArmorProfile of the same file, without the annotations of Kubernetes before 1.30. kubelet sends it in an older form, too.
func (p *Pod) apparmor(c *Container) (message *runtimeapi.SecurityProfile, older string) {
	profile := cmp.Or(c.Security.AppArmor, p.Spec.Security.AppArmor)
	if profile == nil {
		return nil, ""
	}
	older = map[string]string{"RuntimeDefault": "runtime/default", "Unconfined": "unconfined", "Localhost": "localhost/"}[profile.Type]
	return profile.message(), older + profile.Localhost
}

func (p *Profile) message() *runtimeapi.SecurityProfile {
	return &runtimeapi.SecurityProfile{
		ProfileType: runtimeapi.SecurityProfile_ProfileType(runtimeapi.SecurityProfile_ProfileType_value[p.Type]), LocalhostRef: p.Localhost,
	}
}
