package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// dispatch runs the plugin's handlers of a hook, in the order in which they were
// registered. The result is that of wp_hook.
func dispatch(hook abi.Hook) int32 {
	begin()
	var err error
	for i := range plugin.handlers {
		h := &plugin.handlers[i]
		if h.hook != hook {
			continue
		}
		if err = h.run(); err != nil {
			break
		}
	}
	if err == nil && len(refused) > 0 {
		err = unhandled()
	}
	switch {
	case rejected:
		return abi.Reject
	case err != nil:
		return failed(err)
	}
	return abi.Continue
}

// begin forgets what an earlier call has left.
func begin() {
	refused, rejected = nil, false
}

// configure shows the plugin its configuration. The result is that of wp_configure. What
// it leaves in memory is what the host puts back after each call: a fresh chunk with it, so
// that calls need not allocate one.
func configure() int32 {
	begin()
	if plugin.configure != nil {
		err := plugin.configure(Config())
		if err == nil {
			err = unhandled()
		}
		if err != nil {
			return failed(err)
		}
	}
	refill(0)
	return 0
}

// failed tells the host why, and returns the error's number.
func failed(err error) int32 {
	hostFail(err.Error())
	if e := asError(err); e != nil {
		return int32(e.Errno)
	}
	return int32(abi.Invalid)
}
