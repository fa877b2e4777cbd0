// Package systemd has the proxy's units. Packages for distributions carry them as they are,
// and `wasmproxy host install` writes them on other hosts.
package systemd

import _ "embed"

// Names of the units.
const (
	SocketName  = "wasmproxy.socket"
	ServiceName = "wasmproxy.service"
)

// Program is the path of the program in the service unit.
const Program = "/usr/bin/wasmproxy"

//go:embed wasmproxy.socket
var socket string

//go:embed wasmproxy.service
var service string

// Socket returns the socket unit. It listens on the path that the proxy listens on by default.
func Socket() string { return socket }

// Service returns the service unit, which runs Program.
func Service() string { return service }
