package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// dispatch runs the plugin's handlers of a hook, in the order in which they were
// registered. The result is that of wp_hook.
func dispatch(hook abi.Hook) int32 {
	refused, rejected = nil, false
	forget()
	err := handle(hook)
	if err == nil {
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

func handle(hook abi.Hook) error {
	for _, h := range plugin.handlers {
		if h.hook != hook {
			continue
		}
		if err := h.run(); err != nil {
			return err
		}
	}
	return nil
}

// configure shows the plugin its configuration. The result is that of wp_configure.
func configure() int32 {
	refused = nil
	forget()
	if plugin.configure == nil {
		return 0
	}
	err := plugin.configure(Config())
	if err == nil {
		err = unhandled()
	}
	if err != nil {
		return failed(err)
	}
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
