package loader

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Check loads one plugin, and says what it is and what an operator should know of it.
func (l *Loader) Check(ctx context.Context, d registry.Description) (lines []string, err error) {
	if d.Problem != nil {
		return nil, d.Problem
	}
	have, err := l.Open(ctx, d, NewPersistent(), false)
	if err != nil {
		return nil, err
	}
	defer have.Release()
	m, manifest := l.Member(d, have, nil), have.Manifest()
	title, mode := manifest.Name+" "+manifest.Version, m.Policy.String()
	if d.IsHookServer() {
		title = manifest.Description
	}
	if m.DryRun {
		mode += ", dry-run"
	}
	called := "no hooks: it is never called, since runtime-hooks of its file names none that it can serve"
	if names := m.Hooks.Names(); len(names) > 0 {
		called = "hooks " + strings.Join(names, ", ")
	}
	lines = append(lines, fmt.Sprintf("%s: %s, %s, %s", m.ID, title, mode, called))
	for _, n := range l.Warnings(d, manifest) {
		lines = append(lines, fmt.Sprintf("%s: warning: %s", m.ID, slogsink.Line(n, "plugin")))
	}
	return lines, nil
}
