package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

// units are the suffixes of Kubernetes quantities that are whole numbers.
var units = [...]struct {
	suffix string
	size   int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15},
}

// quantity reads the quantity at a path, 0 if there is none.
func quantity(text string, path ...string) (int64, error) {
	text, ok, err := json.Find(text, path...)
	if !ok {
		return 0, err
	}
	number, size := text, int64(1)
	for _, u := range units {
		if n := len(text) - len(u.suffix); n > 0 && text[n:] == u.suffix {
			number, size = text[:n], u.size
			break
		}
	}
	v, ok := wp.ParseInt(number)
	if !ok || v < 0 || v > (1<<63-1)/size {
		return 0, wp.Failure(path[len(path)-1] + ": \"" + text + "\" is not a whole quantity")
	}
	return v * size, nil
}
