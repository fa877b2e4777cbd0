// Package image takes the names of images apart, as Docker, containerd and kubelet read them: nginx is
// docker.io/library/nginx:latest. The rules are those of github.com/distribution/reference.
//
// It does not know what a runtime makes of a short name: CRI-O looks it up in registries.conf. See [Reference.Short].
package image

import wp "github.com/wasmproxy/wasmproxy/sdk"

// Reference is a name of an image, with what was left out of it.
type Reference struct {
	Registry   string // with its port; docker.io if there is none
	Repository string // library/ and the name, for a name without a path of docker.io
	Tag        string // latest if there is neither tag nor digest, "" if there is a digest alone
	Digest     string // such as sha256:aaaa…, "" if there is none
	Short      bool   // the name has no registry
}

// Name returns the registry and the repository.
func (r Reference) Name() string { return r.Registry + "/" + r.Repository }

// String returns the whole reference.
func (r Reference) String() string {
	name := r.Name()
	if r.Tag != "" {
		name += ":" + r.Tag
	}
	if r.Digest != "" {
		name += "@" + r.Digest
	}
	return name
}

// maxRepository is how many bytes a repository has at most.
const maxRepository = 255

// Parse takes a name apart. An image's id is none: see [IsID].
func Parse(name string) (Reference, error) {
	if IsID(name) {
		return Reference{}, wrong(name, "it is an image's id")
	}
	r := Reference{Registry: "docker.io", Repository: name, Short: true}
	if at := index(name, '@'); at >= 0 {
		r.Repository, r.Digest = name[:at], name[at+1:]
		if !isDigest(r.Digest) {
			return Reference{}, wrong(name, "its digest is not sha256:, sha384: or sha512: and hexadecimal digits of that length")
		}
	}
	for i := len(r.Repository) - 1; i >= 0 && r.Repository[i] != '/'; i-- {
		if r.Repository[i] != ':' {
			continue
		}
		r.Repository, r.Tag = r.Repository[:i], r.Repository[i+1:]
		if !isTag(r.Tag) {
			return Reference{}, wrong(name, "its tag is not 1 to 128 letters, digits, _, . and -, without . or - at its beginning")
		}
		break
	}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = "latest"
	}

	// What is before the first slash is a registry if it cannot be part of a path.
	if slash := index(r.Repository, '/'); slash >= 0 && isHost(r.Repository[:slash]) {
		r.Registry, r.Repository, r.Short = r.Repository[:slash], r.Repository[slash+1:], false
	}
	if r.Registry == "index.docker.io" {
		r.Registry = "docker.io"
	}
	if r.Registry == "docker.io" && index(r.Repository, '/') < 0 {
		r.Repository = "library/" + r.Repository
	}
	switch {
	case !isRegistry(r.Registry):
		return Reference{}, wrong(name, "its registry is not a host with an optional port")
	case !isRepository(r.Repository):
		return Reference{}, wrong(name, "its repository is not small letters and digits, with /, ., _, __ or - between them")
	case len(r.Repository) > maxRepository:
		return Reference{}, wrong(name, "its repository has more than 255 bytes")
	}
	return r, nil
}

func wrong(name, why string) error {
	return wp.Failure("\"" + name + "\" is not the name of an image: " + why)
}

func isHost(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.', c == ':', c >= 'A' && c <= 'Z':
			return true
		}
	}
	return text == "localhost"
}

// isRegistry accepts names, addresses, and addresses of IPv6 in brackets, with a port or without.
func isRegistry(text string) bool {
	if text != "" && text[0] == '[' {
		end := index(text, ']')
		if end < 2 {
			return false
		}
		for i := 1; i < end; i++ {
			if c := text[i]; c != ':' && !isHex(c|0x20) {
				return false
			}
		}
		return end+1 == len(text) || isPort(text[end+1:])
	}
	before := byte('.')
	for i := range len(text) {
		c := text[i]
		switch {
		case isLetter(c|0x20) || isDigit(c):
		case c == ':':
			return isEnd(before) && isPort(text[i:])
		case c != '.' && c != '-', c == '.' && !isEnd(before), before == '.':
			return false
		}
		before = c
	}
	return isEnd(before)
}

// isEnd reports whether a part of a host may end with the character.
func isEnd(c byte) bool { return c != '.' && c != '-' }

func isPort(text string) bool {
	for i := 1; i < len(text); i++ {
		if !isDigit(text[i]) {
			return false
		}
	}
	return len(text) > 1 && text[0] == ':'
}

// isRepository accepts small letters and digits, with one /, ., _ or __, or any number of -, between them.
func isRepository(text string) bool {
	between := "" // what is before the character
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && !isDigit(c) {
			between += string(rune(c))
			continue
		}
		if first := i > 0 && i == len(between); first || !isSeparator(between) {
			return false
		}
		between = ""
	}
	return text != "" && between == ""
}

func isSeparator(text string) bool {
	switch text {
	case "", "/", ".", "_", "__":
		return true
	}
	for i := range len(text) {
		if text[i] != '-' {
			return false
		}
	}
	return true
}

func isTag(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case isLetter(c | 0x20), isDigit(c), c == '_':
		case i > 0 && (c == '.' || c == '-'):
		default:
			return false
		}
	}
	return text != "" && len(text) <= 128
}

// algorithms of digests, with how many hexadecimal digits they have.
var algorithms = [...]struct {
	name   string
	digits int
}{{"sha256:", 64}, {"sha384:", 96}, {"sha512:", 128}}

func isDigest(text string) bool {
	for _, a := range algorithms {
		n := len(a.name)
		if len(text) == n+a.digits && text[:n] == a.name {
			return allHex(text[n:])
		}
	}
	return false
}

// IsID reports whether a name is an image's id, which a user may write for an image that is there: 64 hexadecimal
// digits, or a digest.
func IsID(name string) bool { return isDigest(name) || len(name) == 64 && allHex(name) }

func allHex(text string) bool {
	for i := range len(text) {
		if !isHex(text[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool    { return isDigit(c) || c >= 'a' && c <= 'f' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' }

func index(text string, b byte) int {
	for i := range len(text) {
		if text[i] == b {
			return i
		}
	}
	return -1
}
