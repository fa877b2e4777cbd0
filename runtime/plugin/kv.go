package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Bounds of what one plugin may keep.
const (
	MaxKVKeys  = 1024
	MaxKVKey   = 256      // bytes
	MaxKVValue = 64 << 10 // bytes
	MaxKV      = 1 << 20  // bytes of all keys and values

	MaxDurable = 64 // prefixes of durable keys, with which each write is compared
)

// KV keeps one plugin's values from one call to the next, for as long as whoever
// made it holds it: over reloads of the plugin. Durable values can be saved, so that they
// outlive the proxy. It is safe for concurrent use.
type KV struct {
	mu     sync.Mutex
	values map[string]string
	bytes  int // of keys and values

	durable  []string        // prefixes of the keys whose values are durable
	changed  func()          // called after durable values have changed; may be nil
	revision int             // of the durable values
	restored map[string]bool // keys that Restore has set, and no call since; nil once durable is known
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

// Restore sets values that were saved before. It returns how many it dropped, since they exceed
// the bounds of a KV.
func (kv *KV) Restore(values map[string]string) (dropped int) {
	txn := kv.Begin()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if txn.Set(key, values[key]) != abi.OK {
			dropped++
		}
	}
	_ = txn.Commit() // of which nobody else takes the room
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.restored = map[string]bool{}
	for key := range txn.wrote {
		kv.restored[key] = true
	}
	return dropped
}

// SetDurable makes the values durable whose keys begin with one of the prefixes. changed is called
// after a call has changed one of them. It removes restored values that are not durable any
// more, and returns how many they were.
func (kv *KV) SetDurable(prefixes []string, changed func()) (dropped int) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	for key, value := range kv.values {
		restored, is := kv.restored[key], hasPrefix(key, prefixes)
		if is != (restored || hasPrefix(key, kv.durable)) {
			kv.revision++
		}
		if restored && !is {
			delete(kv.values, key)
			kv.bytes -= len(key) + len(value)
			dropped++
		}
	}
	kv.durable, kv.changed, kv.restored = prefixes, changed, nil
	return dropped
}

// Durable returns the durable values, and a number that differs after each change of them. values
// is nil if the number is still known.
func (kv *KV) Durable(known int) (values map[string]string, revision int) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	if kv.revision == known {
		return nil, known
	}
	values = map[string]string{}
	for key, value := range kv.values {
		if hasPrefix(key, kv.durable) {
			values[key] = value
		}
	}
	return values, kv.revision
}

func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Begin returns a transaction without writes.
func (kv *KV) Begin() *Txn { return &Txn{kv: kv} }

// Get returns the value of a key.
func (d *Txn) Get(key string) (string, abi.Errno) {
	v, wrote := d.wrote[key]
	if !wrote {
		d.kv.mu.Lock()
		text, has := d.kv.values[key]
		d.kv.mu.Unlock()
		v = draftValue{text, !has}
	}
	if v.gone {
		return "", abi.NotFound
	}
	return v.text, abi.OK
}

// Set gives a key a value, of both of which it keeps copies.
func (d *Txn) Set(key, value string) abi.Errno {
	switch {
	case key == "":
		return abi.Invalid
	case len(key) > MaxKVKey, len(value) > MaxKVValue:
		return abi.TooLarge
	}
	keys, bytes := d.keys+1, d.bytes+len(key)+len(value)
	if before, errno := d.Get(key); errno == abi.OK {
		keys, bytes = keys-1, bytes-len(key)-len(before)
	}
	d.kv.mu.Lock()
	fits := len(d.kv.values)+keys <= MaxKVKeys && d.kv.bytes+bytes <= MaxKV
	d.kv.mu.Unlock()
	if !fits {
		return abi.Limit
	}
	d.keys, d.bytes = keys, bytes
	d.write(key, draftValue{text: strings.Clone(value)})
	return abi.OK
}

// Delete removes a key; one that is not there is no error.
func (d *Txn) Delete(key string) {
	if before, errno := d.Get(key); errno == abi.OK {
		d.keys, d.bytes = d.keys-1, d.bytes-len(key)-len(before)
		d.write(key, draftValue{gone: true})
	}
}

func (d *Txn) write(key string, v draftValue) {
	if d.wrote == nil {
		d.wrote = map[string]draftValue{}
	}
	d.wrote[strings.Clone(key)] = v
}

// Commit lets others see the writes, all or none: none if other calls have taken
// the room for them meanwhile.
func (d *Txn) Commit() error {
	if len(d.wrote) == 0 {
		return nil
	}
	kv := d.kv
	kv.mu.Lock()
	keys, bytes := 0, 0 // how many more there will be
	for key, v := range d.wrote {
		if before, ok := kv.values[key]; ok {
			keys, bytes = keys-1, bytes-len(key)-len(before)
		}
		if !v.gone {
			keys, bytes = keys+1, bytes+len(key)+len(v.text)
		}
	}
	if len(kv.values)+keys > MaxKVKeys || kv.bytes+bytes > MaxKV {
		kv.mu.Unlock()
		return fmt.Errorf("kv: other calls left no room for what this one wrote: %w", abi.Limit)
	}
	kv.bytes += bytes
	var changed func()
	for key, v := range d.wrote {
		before, had := kv.values[key]
		differs := had == v.gone || before != v.text
		if differs && (kv.restored[key] || hasPrefix(key, kv.durable)) {
			kv.revision++
			changed = kv.changed
		}
		delete(kv.restored, key)
		if v.gone {
			delete(kv.values, key)
		} else {
			kv.values[key] = v.text
		}
	}
	kv.mu.Unlock()
	if changed != nil {
		changed()
	}
	return nil
}
