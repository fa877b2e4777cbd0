package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// startName is the benchmark of how soon a proxy with ten plugins serves, and how soon
// they are active, when the code of all of them is on disk.
const startName = "Start"

// starts starts a proxy with ten copies of the wasm plugin again and again. The first
// start, which compiles them, is not counted.
func (n *node) starts(ctx context.Context, o *options) ([][]*series, error) {
	p := &party{name: wasmproxy10, plugins: 10, hooks: []string{preCreate}}
	module, err := os.ReadFile(filepath.Join(o.root, "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		return nil, err
	}
	if err := n.install(p, module); err != nil {
		return nil, err
	}
	served := &series{benchmark: startName + "/until=served", party: p.name}
	inForce := &series{benchmark: startName + "/until=inforce", party: p.name}
	for round := range o.rounds + 1 {
		first, all, err := n.start(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("start %d of %s: %w", round, p.name, err)
		}
		if round > 0 {
			served.samples, inForce.samples = append(served.samples, first), append(inForce.samples, all)
		}
	}
	return [][]*series{{served}, {inForce}}, nil
}

// start starts the party's proxy once, and ends it when its plugins have shown that they
// are at work.
func (n *node) start(ctx context.Context, p *party) (served, inForce sample, err error) {
	p.asked = map[string]int{}
	begin := time.Now()
	if p.process, err = n.exec(p); err != nil {
		return served, inForce, err
	}
	defer func() { err = errors.Join(err, p.ended()) }()
	if served, err = p.serves(ctx, n.socketOf(p), begin); err != nil {
		return served, inForce, err
	}
	defer p.kubelet.conn.Close()
	err = p.process.Await(ctx, func(context.Context) error {
		at, err := p.inForce()
		inForce = sample{times: []time.Duration{at.Sub(begin)}, cpu: p.process.CPU()}
		return err
	})
	if err != nil {
		return served, inForce, err
	}
	if err := p.kubelet.runPods(ctx); err != nil {
		return served, inForce, err
	}
	return served, inForce, p.checkChange(ctx)
}

// ended ends the proxy, and holds its own count against what was asked of it.
func (p *party) ended() error {
	defer os.Remove(p.process.Log)
	if err := p.process.Stop(); err != nil {
		return err
	}
	return p.checkServed()
}

// serves dials until the socket is there, and calls Version.
func (p *party) serves(ctx context.Context, socket string, begin time.Time) (sample, error) {
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		if p.process.Exited() || time.Since(begin) > 10*time.Second {
			return sample{}, fmt.Errorf("%w; its log ends:\n%s", err, p.process.LastWords())
		}
		time.Sleep(200 * time.Microsecond)
	}
	var err error
	if p.kubelet, err = dial(socket); err != nil {
		return sample{}, err
	}
	err = p.kubelet.version(ctx)
	return sample{times: []time.Duration{time.Since(begin)}, cpu: p.process.CPU()}, err
}

// inForce returns when the proxy said that all of the party's plugins are active.
func (p *party) inForce() (time.Time, error) {
	said, err := os.ReadFile(p.process.Log)
	if err != nil {
		return time.Time{}, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(said)); lines.Scan(); {
		var line struct {
			Time    time.Time `json:"time"`
			Msg     string    `json:"msg"`
			Plugins []string  `json:"plugins"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "plugins active" && len(line.Plugins) == p.plugins {
			return line.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("it has not said that %d plugins are active", p.plugins)
}
