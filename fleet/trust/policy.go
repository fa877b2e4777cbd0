// Package trust reads the host's trust file, which says by whom artifacts must be signed. The file is on the node, and no object of the
// API server can change it. Package verify verifies signatures by it: what that needs is too large for an agent on each node.
package trust

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// maxFile is the largest file that is read, in bytes. Sigstore's trusted root has 7,000.
const maxFile = 1 << 20

// ErrRefused says that an artifact is not to be used. Another try brings the same, unless the trust file or the signatures change.
var ErrRefused = errors.New("not trusted")

// ExitRefused is the exit code of wasmproxy-fleet verify in place of ErrRefused.
const ExitRefused = 3

// file is the trust file.
type file struct {
	TrustedRoot  string `json:"trusted-root,omitempty"` // path of a trusted_root.json, for keyless rules
	Repositories []Rule `json:"repositories"`
}

// Rule says by whom the artifacts of some repositories are signed: by a key, or by an identity that an issuer vouches for.
type Rule struct {
	Name     string `json:"name"` // a repository, or with /* at its end all below
	Key      string `json:"key,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	Identity string `json:"identity,omitempty"` // * stands for any text

	PublicKey crypto.PublicKey `json:"-"` // of Key
	Pattern   *regexp.Regexp   `json:"-"` // of Identity
}

// Policy is a trust file, with the files that it names.
type Policy struct {
	file    string
	reading func(path string) // is called before another file is read
	rules   []Rule

	Root     []byte // the trusted_root.json, as it is written; nil: no rule needs one
	RootPath string
}

// load reads a trust file. Paths in it are relative to its directory, and lie below it.
func (p *Policy) load() (*Policy, error) {
	text, err := regular.Read(p.file, maxFile, nil)
	if err == nil {
		err = p.parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the trust file %s: %w", ErrRefused, p.file, err)
	}
	return p, nil
}

func (p *Policy) parse(text []byte) error {
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return err
	}
	if len(f.Repositories) == 0 {
		return errors.New("repositories is empty: name at least one, or remove the file if nothing is to be verified")
	}
	for i, e := range f.Repositories {
		r, err := p.read(e)
		if err == nil && r.PublicKey == nil && f.TrustedRoot == "" {
			err = errors.New("issuer needs trusted-root, the path of a trusted_root.json")
		}
		if err != nil {
			return fmt.Errorf("repositories[%d], %q: %w", i, e.Name, err)
		}
		p.rules = append(p.rules, r)
	}
	if f.TrustedRoot == "" {
		return nil
	}
	var err error
	if p.Root, p.RootPath, err = p.readFile(f.TrustedRoot); err != nil {
		return fmt.Errorf("trusted-root: %w", err)
	}
	return nil
}

func (p *Policy) read(r Rule) (Rule, error) {
	name := strings.TrimSuffix(r.Name, "/*")
	switch {
	case name == "" || strings.ContainsAny(name, "*@ ") || path.Clean(name) != name:
		return r, errors.New("name is not a repository such as registry.example/plugins/qos, or registry.example/plugins/* for all below")
	case (r.Key == "") == (r.Issuer == ""):
		return r, errors.New("it needs either key, or issuer and identity")
	case (r.Issuer == "") != (r.Identity == ""):
		return r, errors.New("issuer and identity belong together: without one of them, anybody could sign")
	case strings.Trim(r.Identity, "*") == "" && r.Identity != "":
		return r, errors.New("identity is only *: anybody with an account at the issuer could sign")
	case r.Key != "":
		var err error
		r.PublicKey, err = p.readKey(r.Key)
		return r, err
	}
	parts := strings.Split(r.Identity, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	var err error
	r.Pattern, err = regexp.Compile("^" + strings.Join(parts, ".*") + "$")
	return r, err
}

func (p *Policy) readKey(name string) (crypto.PublicKey, error) {
	text, path, err := p.readFile(name)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fmt.Errorf("key: %s is not a public key in PEM, such as cosign.pub", path)
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, fmt.Errorf("key: %s is a private key: nodes need the public one, such as cosign.pub", path)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key: %s is not a public key in PEM, such as cosign.pub: %w", path, err)
	}
	return key, nil
}

// readFile reads a file that the trust file names. The agent's pod has the trust file's directory and no other one of the host.
func (p *Policy) readFile(name string) (text []byte, path string, err error) {
	path = filepath.Join(filepath.Dir(p.file), name)
	if !filepath.IsLocal(name) {
		return nil, path, fmt.Errorf("%s is not a path in the directory of the trust file: write it relative to that", name)
	}
	p.reading(path)
	if text, err = regular.Read(path, maxFile, nil); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, regular.Cause(err))
	}
	return text, path, nil
}

// Rules are the rules of the longest name that a repository has. Each of them suffices, such as during the change of a key. Without one
// nothing of the repository is trusted.
func (p *Policy) Rules(repository string) (all []Rule, err error) {
	for _, r := range p.rules {
		below, several := strings.CutSuffix(r.Name, "*")
		if r.Name != repository && !(several && strings.HasPrefix(repository, below)) {
			continue
		}
		if len(all) > 0 && len(below) > len(strings.TrimSuffix(all[0].Name, "*")) { // the * is no part of a name
			all = nil
		}
		if len(all) == 0 || r.Name == all[0].Name {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the trust file %s has no entry for the repository %s: add one to repositories", ErrRefused, p.file, repository)
	}
	return all, nil
}
