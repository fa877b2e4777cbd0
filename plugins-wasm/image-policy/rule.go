package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

// schema leaves texts without escapes, which are not taken apart here.
const schema = `{"type":"object","additionalProperties":false,"properties":{` + rules + `,` +
	`"namespaces":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false,"properties":{` + rules + `}}}}}`

const rules = `"registries":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$"}},` +
	`"digest":{"type":"boolean"}`

var config string

func configure(text string) error {
	config = text
	return nil
}

// rule is what a namespace's images must be.
type rule struct {
	namespace  string
	any        bool     // registry is allowed
	registries []string // each a registry, or a registry with the beginning of a repository
	digest     bool     // is required
}

// ruleOf returns the rule of a namespace: its own, or else that of all others. The two are not mixed.
func ruleOf(namespace string) rule {
	text, ok, _ := json.Find(config, "namespaces", namespace)
	if !ok {
		text = config
	}
	r := rule{namespace: namespace}
	list, limited, _ := json.Find(text, "registries")
	r.any = !limited
	r.registries, _ = json.Elements(list)
	digest, _, _ := json.Find(text, "digest")
	r.digest = digest == "true"
	return r
}

// image is what is known of an image.
type image struct {
	name    string          // as its user wrote it, "" if that is not known
	id      string          // "" if that is not known
	digests func() []string // where it was pulled from; nil if that cannot be told
	pulled  bool            // it is being pulled
}

// refusal is why an image is not allowed, "" if it is.
func (r rule) refusal(i image) string {
	switch {
	case r.digest && i.name == "":
		return "namespace " + r.namespace + " requires a digest, and nobody has told the name of " + i.title()
	case r.digest && !hasDigest(i.name):
		return i.title() + " is not named by a digest, as namespace " + r.namespace + " requires: write " + example(i.name)
	case r.any:
		return ""
	}
	if name := qualified(i.name); name != "" {
		if r.allows(name) {
			return ""
		}
		return i.title() + " is not from a registry that namespace " + r.namespace + " allows: " + r.allowed()
	}
	if i.pulled {
		return ""
	}
	return r.refusalByDigests(i)
}

// refusalByDigests goes by where the image was pulled from. Its id is that of its content: that it is from an allowed registry,
// too, is enough.
func (r rule) refusalByDigests(i image) string {
	var from []string
	if i.digests != nil {
		from = i.digests()
	}
	for _, name := range from {
		if r.allows(name) {
			return ""
		}
	}
	if len(from) == 0 {
		return i.title() + " names no registry, and the runtime knows none that it was pulled from; namespace " + r.namespace + " allows " + r.allowed()
	}
	return i.title() + " was pulled as " + from[0] + ", and not from a registry that namespace " + r.namespace + " allows: " + r.allowed()
}

// allows reports whether a name with a registry begins with an allowed one.
func (r rule) allows(name string) bool {
	for _, allowed := range r.registries {
		if begins(name, allowed) {
			return true
		}
	}
	return false
}

// begins reports whether a name begins with a registry, or a whole part of its path. What follows a registry's name and a
// colon is a port, which is of another one.
func begins(name, allowed string) bool {
	if len(name) <= len(allowed) || name[:len(allowed)] != allowed {
		return false
	}
	next := name[len(allowed)]
	if next == '/' {
		return true
	}
	return index(allowed, '/') >= 0 && (next == ':' || next == '@')
}

func (r rule) allowed() string {
	if len(r.registries) == 0 {
		return "none"
	}
	all := r.registries[0]
	for _, registry := range r.registries[1:] {
		all += ", " + registry
	}
	return all
}

func (i image) title() string {
	switch {
	case i.name != "":
		return "image " + i.name
	case i.id != "":
		return "image " + i.id
	}
	return "an image"
}

// qualified returns a name with its registry, "" if only the runtime knows it. What is before the first slash is a registry if it
// cannot be part of a path. CRI-O looks for a short name where its registries.conf says; all others take it for one of docker.io.
func qualified(name string) string {
	const usual = "docker.io/"
	slash := index(name, '/')
	host := slash > 0 && isHost(name[:slash])
	switch {
	case host && name[:slash+1] != usual:
		return name
	case host:
		name = name[slash+1:]
	case name == "" || isID(name) || wp.RuntimeName() == "cri-o":
		return ""
	}
	if index(name, '/') < 0 {
		name = "library/" + name
	}
	return usual + name
}

// isHost takes capital letters for a registry's, as runtimes do: a path has none.
func isHost(text string) bool {
	for i := range len(text) {
		capital := text[i] >= 'A' && text[i] <= 'Z'
		if capital || text[i] == '.' || text[i] == ':' {
			return true
		}
	}
	return text == "localhost"
}

// isID reports whether a name is an image's id: a user may write one for an image that is there.
func isID(name string) bool {
	const algorithm = "sha256:"
	if len(name) > len(algorithm) && name[:len(algorithm)] == algorithm {
		name = name[len(algorithm):]
	}
	if len(name) != 64 {
		return false
	}
	for i := range len(name) {
		digit := name[i] >= '0' && name[i] <= '9'
		letter := name[i] >= 'a' && name[i] <= 'f'
		if !digit && !letter {
			return false
		}
	}
	return true
}

// hasDigest reports whether a name says the content: by the digest of a repository, or by an id.
func hasDigest(name string) bool { return index(name, '@') >= 0 || isID(name) }

// example is how a name is to be written.
func example(name string) string {
	for i := len(name) - 1; i >= 0 && name[i] != '/'; i-- {
		if name[i] == ':' {
			name = name[:i]
			break
		}
	}
	return name + "@sha256:DIGEST"
}

func index(text string, b byte) int {
	for i := range len(text) {
		if text[i] == b {
			return i
		}
	}
	return -1
}
