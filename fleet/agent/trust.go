package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
)

// signatureFile has the bundle by which a revision on disk is trusted. If the agent starts anew or the trust file changes, the revision
// is verified again by it, without a network.
const signatureFile = "signature.bundle"

// guard lets in what is signed as the node's trust file asks, or everything if there is none.
type guard struct {
	trust    *trust.File
	path     string // of the trust file
	program  string // wasmproxy-fleet-verify
	registry oci.Client
}

// now says whether the node has a trust file, and how often that has changed.
func (g guard) now() (v1alpha1.Trust, int) {
	policy, changes, err := g.trust.Policy()
	if policy == nil && err == nil {
		return v1alpha1.TrustNone, changes
	}
	return v1alpha1.TrustEnforced, changes
}

// letIn says why an artifact is not let in. It tries the signature that its directory has, then those of the registry, and keeps the one
// that counts there. A child process verifies: see the RATIONALE of fleet.
func (g guard) letIn(ctx context.Context, artifact, dir string) error {
	policy, _, err := g.trust.Policy()
	if policy == nil {
		return err
	}
	repository, _, err := oci.Repository(artifact)
	if err == nil {
		_, err = policy.Rules(repository)
	}
	if err != nil {
		return err
	}
	kept := filepath.Join(dir, signatureFile)
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) && g.verify(ctx, artifact, "--bundle", kept) == nil {
		return nil
	}
	return g.verify(ctx, artifact, "--write-bundle", kept,
		"--mirrors", g.registry.Mirrors, "--registry-config", g.registry.Credentials, "--plain-http", strings.Join(g.registry.PlainHTTP, ","))
}

func (g guard) verify(ctx context.Context, artifact string, args ...string) error {
	cmd := exec.CommandContext(ctx, g.program, append([]string{artifact, "--trust", g.path}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if !ended || !exit.Exited() {
		return err
	}
	text := strings.TrimPrefix(lastLine(stderr.String()), "wasmproxy-fleet verify: ")
	if exit.ExitCode() == trust.ExitRefused {
		return fmt.Errorf("%w: %s", trust.ErrRefused, strings.TrimPrefix(text, trust.ErrRefused.Error()+": "))
	}
	return errors.New(text)
}

// refusal marks an error that another try brings again.
func refusal(err error) error {
	if errors.Is(err, oci.ErrContent) || errors.Is(err, trust.ErrRefused) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}
