package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// mirrorTime is how long one mirror may take. The registry itself has the time of the caller.
const mirrorTime = time.Minute

// ask has try ask the mirrors of a reference's registry, in their order, and then the registry itself, until there is no error. What a
// mirror cannot do, or has wrong, is no answer: whether the artifact cannot be used the registry alone says.
func (c Client) ask(ctx context.Context, reference string, try func(context.Context, *remote.Repository, digest.Digest) error) error {
	ref, want, err := byDigest(reference)
	if err != nil {
		return err
	}
	mirrors, err := c.mirrors(ref)
	if err != nil {
		return err
	}
	var missed []string
	for _, m := range mirrors {
		once, cancel := context.WithTimeout(ctx, mirrorTime)
		err := try(once, m, want)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		missed = append(missed, fmt.Sprintf("the mirror %s: %v", m.Reference.Registry, err))
	}
	repo, err := c.repository(ref)
	if err != nil {
		return err
	}
	if err = try(ctx, repo, want); err != nil && len(missed) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.Join(missed, "; "))
	}
	return err
}

// mirrors are the repositories at the mirrors of a reference's registry. The file is read each time, so that a change needs no restart.
func (c Client) mirrors(ref registry.Reference) (all []*remote.Repository, err error) {
	if c.Mirrors == "" {
		return nil, nil
	}
	text, err := regular.Read(c.Mirrors, maxManifest, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var mirrors map[string][]string
	if err == nil {
		err = yaml.UnmarshalStrict(text, &mirrors)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the mirrors of registries: %s: %w", c.Mirrors, err)
	}
	for _, text := range mirrors[ref.Registry] {
		at, err := url.Parse(text)
		if err == nil && !isWeb(at) {
			err = errors.New("it is not a URL such as https://mirror.example")
		}
		var repo *remote.Repository
		if err == nil {
			name := strings.TrimPrefix(strings.TrimSuffix(at.Path, "/")+"/"+ref.Repository, "/")
			repo, err = c.repositoryAt(at.Host, name, at.Scheme == "http", namespace{at.Host, ref.Registry})
		}
		if err != nil {
			return nil, fmt.Errorf("reading the mirrors of registries: %s: the mirror %q of %s: %w", c.Mirrors, text, ref.Registry, err)
		}
		all = append(all, repo)
	}
	return all, nil
}

func isWeb(u *url.URL) bool { return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") }

// namespace is an HTTP transport that tells a mirror of several registries which of them is meant, in the way of containerd.
type namespace struct{ mirror, registry string }

func (n namespace) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == n.mirror { // and not what it redirects to, whose URL may be signed
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Set("ns", n.registry)
		r.URL.RawQuery = q.Encode()
	}
	return http.DefaultTransport.RoundTrip(r)
}
