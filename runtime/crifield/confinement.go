package crifield

import (
	"net"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Profiles of seccomp and AppArmor have one form of text, which CRI itself had before it had messages for them.
const (
	runtimeDefault   = "runtime/default"
	unconfined       = "unconfined"
	localhostProfile = "localhost/"
)

func seccomp() access {
	return profile(
		func(s *containerSecurity) **runtimeapi.SecurityProfile { return &s.Seccomp },
		//lint:ignore SA1019 older callers send it
		(*containerSecurity).GetSeccompProfilePath)
}

func apparmor() access {
	return profile(
		func(s *containerSecurity) **runtimeapi.SecurityProfile { return &s.Apparmor },
		//lint:ignore SA1019 older callers send it
		(*containerSecurity).GetApparmorProfile)
}

// profile is one of the message, or, of a caller that sends none, the older text.
func profile(at func(*containerSecurity) **runtimeapi.SecurityProfile, older func(*containerSecurity) string) access {
	return access{
		text: func(o Object) (string, bool) {
			s := security.of(o)
			if s == nil {
				return "", true
			}
			p := *at(s)
			if p == nil {
				return older(s), true
			}
			switch p.GetProfileType() {
			case runtimeapi.SecurityProfile_RuntimeDefault:
				return runtimeDefault, true
			case runtimeapi.SecurityProfile_Unconfined:
				return unconfined, true
			}
			return localhostProfile + p.GetLocalhostRef(), true
		},
		set: func(o Object, c *plugin.Change) {
			p := &runtimeapi.SecurityProfile{}
			switch c.Text {
			case "":
				p = nil
			case runtimeDefault:
				p.ProfileType = runtimeapi.SecurityProfile_RuntimeDefault
			case unconfined:
				p.ProfileType = runtimeapi.SecurityProfile_Unconfined
			default:
				p.ProfileType, p.LocalhostRef = runtimeapi.SecurityProfile_Localhost, strings.TrimPrefix(c.Text, localhostProfile)
			}
			*at(security.make(o)) = p
		},
	}
}

func portMappings() access {
	return access{
		list: func(o Object) ([]string, bool) { return each(o.Pod.Config.GetPortMappings(), portText), true },
		size: func(o Object) int { return len(o.Pod.Config.GetPortMappings()) },
		set: func(o Object, c *plugin.Change) {
			mappings := &podConfig.make(o).PortMappings
			*mappings = nil
			for _, text := range c.Elements() {
				*mappings = append(*mappings, portOf(text))
			}
		},
	}
}

// portText is HOST_IP:HOST_PORT:CONTAINER_PORT/PROTOCOL. Without an address the first part and its colon are left out.
func portText(m *runtimeapi.PortMapping) string {
	host := decimal(int64(m.GetHostPort()))
	if m.GetHostIp() != "" {
		host = net.JoinHostPort(m.GetHostIp(), host)
	}
	return host + ":" + decimal(int64(m.GetContainerPort())) + "/" + protocols.of(int32(m.GetProtocol()))
}

// portOf returns a port mapping that is written as plugins have it. A number that is none is 0.
func portOf(text string) *runtimeapi.PortMapping {
	text, protocol, _ := strings.Cut(text, "/")
	host, inside := "", text
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		host, inside = text[:colon], text[colon+1:]
	}
	m := &runtimeapi.PortMapping{ContainerPort: port(inside), Protocol: runtimeapi.Protocol(protocols.value(protocol))}
	if ip, number, err := net.SplitHostPort(host); err == nil {
		m.HostIp, host = ip, number
	}
	m.HostPort = port(host)
	return m
}

func port(text string) int32 {
	n, _ := strconv.ParseUint(text, 10, 16)
	return int32(n)
}
