package plugin

import (
	"fmt"
	"maps"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Bounds of what one plugin may keep.
const (
	MaxKVKeys  = 1024
	MaxKVKey   = 256      // bytes
	MaxKVValue = 64 << 10 // bytes
	MaxKV      = 1 << 20  // bytes of all keys and values
)

// KV keeps one plugin's values from one call to the next, for as long as whoever
// made it holds it: over reloads of the plugin, not over a restart of the proxy.
// It is safe for concurrent use.
type KV struct {
	mu     sync.Mutex
	values map[string]string
	bytes  int // of keys and values
}

// NewKV returns an empty KV.
func NewKV() *KV { return &KV{values: map[string]string{}} }

// Txn is what one call writes to a KV: it sees its own writes at once, others
// see them when they are committed. It is not safe for concurrent use.
type Txn struct {
	kv    *KV
	wrote map[string]draftValue
	keys  int // how many more keys there would be, as far as this call saw
	bytes int // and how many more bytes
}

type draftValue struct {
	text string
	gone bool
}

// All returns a copy of all that is kept.
func (kv *KV) All() map[string]string {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	return maps.Clone(kv.values)
}

// Begin returns a transaction without writes.
func (kv *KV) Begin() *Txn { return &Txn{kv: kv} }

// Get returns the value of a key.
func (d *Txn) Get(key string) (string, abi.Errno) {
	text, ok := d.get(key)
	if !ok {
		return "", abi.NotFound
	}
	return text, abi.OK
}

func (d *Txn) get(key string) (string, bool) {
	if v, wrote := d.wrote[key]; wrote {
		return v.text, !v.gone
	}
	d.kv.mu.Lock()
	defer d.kv.mu.Unlock()
	text, ok := d.kv.values[key]
	return text, ok
}

// Set gives a key a value.
func (d *Txn) Set(key, value string) abi.Errno {
	switch {
	case key == "":
		return abi.Invalid
	case len(key) > MaxKVKey, len(value) > MaxKVValue:
		return abi.TooLarge
	}
	keys, bytes := d.keys+1, d.bytes+len(key)+len(value)
	if before, ok := d.get(key); ok {
		keys, bytes = keys-1, bytes-len(key)-len(before)
	}
	if !d.kv.fits(keys, bytes) {
		return abi.Limit
	}
	d.keys, d.bytes = keys, bytes
	d.write(key, draftValue{text: value})
	return abi.OK
}

// Delete removes a key; one that is not there is no error.
func (d *Txn) Delete(key string) {
	if before, ok := d.get(key); ok {
		d.keys, d.bytes = d.keys-1, d.bytes-len(key)-len(before)
		d.write(key, draftValue{gone: true})
	}
}

func (d *Txn) write(key string, v draftValue) {
	if d.wrote == nil {
		d.wrote = map[string]draftValue{}
	}
	d.wrote[key] = v
}

// fits reports whether there is room for as much more.
func (kv *KV) fits(keys, bytes int) bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	return len(kv.values)+keys <= MaxKVKeys && kv.bytes+bytes <= MaxKV
}

// Commit lets others see the writes, all or none: none if other calls have taken
// the room for them meanwhile.
func (d *Txn) Commit() error {
	if len(d.wrote) == 0 {
		return nil
	}
	kv := d.kv
	kv.mu.Lock()
	defer kv.mu.Unlock()
	keys, bytes := kv.grow(d.wrote)
	if len(kv.values)+keys > MaxKVKeys || kv.bytes+bytes > MaxKV {
		return fmt.Errorf("kv: other calls left no room for what this one wrote: %w", abi.Limit)
	}
	kv.bytes += bytes
	for key, v := range d.wrote {
		if v.gone {
			delete(kv.values, key)
		} else {
			kv.values[key] = v.text
		}
	}
	return nil
}

// grow returns how many more keys and bytes there will be with these writes.
func (kv *KV) grow(wrote map[string]draftValue) (keys, bytes int) {
	for key, v := range wrote {
		if before, ok := kv.values[key]; ok {
			keys, bytes = keys-1, bytes-len(key)-len(before)
		}
		if !v.gone {
			keys, bytes = keys+1, bytes+len(key)+len(v.text)
		}
	}
	return keys, bytes
}
