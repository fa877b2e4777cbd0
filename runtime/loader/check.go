package loader

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
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

// CheckShadow says why the shadow of a plugin would not be loaded. It says nothing of a plugin without one.
func (l *Loader) CheckShadow(ctx context.Context, d registry.Description) (lines []string) {
	if d.Shadow == nil {
		return nil
	}
	err := d.Shadow.Problem
	if err == nil {
		var have *Loaded
		if have, err = l.Shadows().Open(ctx, *d.Shadow, NewPersistent(), false); err == nil {
			have.Release()
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: warning: %s", d.ID, slogsink.Line(&observe.ShadowNotLoaded{Plugin: d.ID, Err: err}, "plugin"))}
}
