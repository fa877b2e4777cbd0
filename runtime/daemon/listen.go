package daemon

import (
	"context"
	"net"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// listenMode is of the socket for calls: kubelet may run with a group of its own.
const listenMode = 0o660

// listen returns the socket that systemd has passed, or makes one.
func (d *daemon) listen(ctx context.Context) (net.Listener, error) {
	path := config.Path(d.config.Listen)
	if l, err := d.passed.Listener(path); l != nil || err != nil {
		return l, err
	}
	return proxy.Listen(ctx, path, listenMode)
}

// selfCheck succeeds if the owner of the slots and the listener answer. It makes no call of
// CRI and asks no plugin.
func (d *daemon) selfCheck(ctx context.Context) error {
	if err := d.slots.Answer(ctx); err != nil {
		return err
	}
	return d.answers(ctx, d.config.Listen)
}
