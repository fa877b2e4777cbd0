package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/image"
	"github.com/wasmproxy/wasmproxy/sdk/json"
)

const schema = `{"type":"object","additionalProperties":false,"properties":{` + rules + `,` +
	`"namespaces":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false,"properties":{` + rules + `}}}}}`

const rules = `"registries":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$"}},` +
	`"digest":{"type":"boolean"}`

// rule is what a namespace's images must be.
type rule struct {
	namespace  string
	any        bool     // registry is allowed
	registries []string // each a registry, or a registry with the beginning of a repository
	digest     bool     // is required
}

var (
	general rule   // of the namespaces that have none of their own
	own     []rule // of single namespaces
)

func configure(text string) error {
	settings := json.Parse(text)
	general, own = read(settings, ""), nil
	for name, within := range settings.Object("namespaces").ObjectMembers() {
		own = append(own, read(within, name))
	}
	return settings.Err()
}

func read(settings json.Object, namespace string) rule {
	return rule{namespace, !settings.Has("registries"), settings.Texts("registries"), settings.Bool("digest", false)}
}

// ruleOf returns the rule of a namespace: its own, or else that of all others. The two are not mixed.
func ruleOf(namespace string) rule {
	for _, r := range own {
		if r.namespace == namespace {
			return r
		}
	}
	r := general
	r.namespace = namespace
	return r
}

// known is what is known of an image.
type known struct {
	name    string          // as its user wrote it, "" if that is not known
	id      string          // "" if that is not known
	digests func() []string // where it was pulled from; nil if that cannot be told
	pulled  bool            // it is being pulled
}

// refusal is why an image is not allowed, "" if it is.
func (r rule) refusal(i known) string {
	ref, err := image.Parse(i.name)
	id := i.name == "" || image.IsID(i.name)
	switch {
	case r.any && !r.digest:
		return ""
	case err != nil && !id:
		return err.Error()
	case r.digest && i.name == "":
		return "namespace " + r.namespace + " requires a digest, and nobody has told the name of " + i.title()
	case r.digest && !id && ref.Digest == "":
		return i.title() + " is not named by a digest, as namespace " + r.namespace + " requires: write " + ref.Name() + "@sha256:DIGEST"
	case r.any:
		return ""
	case id || ref.Short && wp.Node.RuntimeName() == "cri-o": // CRI-O looks for a short name where its registries.conf says
		return r.refusalByDigests(i)
	case r.allows(ref):
		return ""
	}
	return i.title() + " is not from a registry that namespace " + r.namespace + " allows: " + r.allowed()
}

// refusalByDigests goes by where the image was pulled from. Its id is that of its content: that it is from an allowed registry,
// too, is enough.
func (r rule) refusalByDigests(i known) string {
	if i.pulled {
		return ""
	}
	var from []string
	if i.digests != nil {
		from = i.digests()
	}
	for _, name := range from {
		if ref, err := image.Parse(name); err == nil && r.allows(ref) {
			return ""
		}
	}
	if len(from) == 0 {
		return i.title() + " names no registry, and the runtime knows none that it was pulled from; namespace " + r.namespace + " allows " + r.allowed()
	}
	return i.title() + " was pulled as " + from[0] + ", and not from a registry that namespace " + r.namespace + " allows: " + r.allowed()
}

// allows reports whether an image is from an allowed registry, or from an allowed part of one.
func (r rule) allows(ref image.Reference) bool {
	from := ref.Name() + "/"
	for _, allowed := range r.registries {
		if n := len(allowed); len(from) > n && from[:n] == allowed && from[n] == '/' {
			return true
		}
	}
	return false
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

func (i known) title() string {
	switch {
	case i.name != "":
		return "image " + i.name
	case i.id != "":
		return "image " + i.id
	}
	return "an image"
}
