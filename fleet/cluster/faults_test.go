package cluster

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// away is how long a part that was killed is not there.
const away = time.Second

// victim is what is killed.
type victim struct {
	name        string
	kill, start func(*parts)
}

// victims are killed one after the other at a moment. After an outage of the API server, clients of Kubernetes look for it again after longer
// and longer times, up to a minute, unless they had it for two minutes: so the last victims are those that forget that.
var victims = []victim{
	{"all", (*parts).killAll, (*parts).startAll},
	{"registry", func(p *parts) { p.store.kill() }, (*parts).startStore},
	{"api-server", func(p *parts) { p.s.Kill() }, func(p *parts) { p.s.Start() }},
	{"controller", func(p *parts) { p.controller.kill() }, func(p *parts) { p.controller.start() }},
	{"agents", (*parts).killAgents, (*parts).startAgents},
	{"agents-often", (*parts).killAgentsOften, (*parts).startAgents},
}

// killAgentsOften kills the agents at random moments of whatever they do.
func (p *parts) killAgentsOften() {
	for range 10 {
		p.killAgents()
		p.startAgents()
		time.Sleep(rand.N(500 * time.Millisecond))
	}
	p.killAgents()
}

func (p *parts) killAll() {
	p.s.Kill()
	p.controller.kill()
	p.killAgents()
	p.store.kill()
}

func (p *parts) startAll() {
	p.s.Start()
	p.startAgents()
	p.controller.start()
	p.startStore()
}

// moment is one in the life of a plugin.
type moment struct {
	name    string
	begin   func(*parts, *trial)       // what a user does
	reached func(*parts, *trial) error // nil when it is the moment
	end     func(*parts, *trial)       // waits until all is as it is to be
}

var moments = []moment{
	{"created", update, is(at("Fetch")), (*parts).updated},
	{"downloading", downloading, (*parts).allDownload, (*parts).updated},
	{"canary", update, is(at("Canary")), (*parts).updated},
	{"switching", update, (*parts).oneHas, (*parts).updated},
	{"probation", update, phases(v1alpha1.Probation), (*parts).updated},
	{"next-step", update, is(at("34%")), (*parts).updated},
	{"baking", update, phases(v1alpha1.Healthy, v1alpha1.Probation), (*parts).updated},
	{"last-step", update, is(at("100%")), (*parts).updated},
	{"halted", bad("fail", `{"onFailure": "Halt", "bakeSeconds": 60}`), is(halted), (*parts).staysHalted},
	{"going-back", bad("fail", long), is(rolledBack), (*parts).wentBack},
	{"forged", bad("forged", long), (*parts).oneRefuses, (*parts).wentBack},
	{"lying", bad("noop", long), (*parts).oneRefuses, (*parts).wentBack},
	{"taken-back", takeBack, is(noUpdate), (*parts).isBack},
	{"disabled", disable, (*parts).oneIsOff, (*parts).enabledAgain},
	{"removal", remove, (*parts).oneHasNone, (*parts).madeAgain},
}

// trial is a kill at a moment.
type trial struct {
	victim
	moment
	revision // the update
	took     time.Duration
}

// revision is one of the plugin, with its module and the config that no other one has.
type revision struct{ name, module, config string }

func (x *trial) title() string { return x.victim.name + "/" + x.moment.name }

// someTrials are those that are made unless FAULTS has patterns of names, with commas between them.
const someTrials = "controller/canary,agents-often/switching,registry/downloading,api-server/next-step,agents/going-back,registry/lying,all/removal"

func selected(t *testing.T) (all []*trial) {
	t.Helper()
	patterns := strings.Split(cmp.Or(os.Getenv("FAULTS"), someTrials), ",")
	for _, s := range moments {
		for _, v := range victims {
			x := &trial{victim: v, moment: s}
			chosen := slices.ContainsFunc(patterns, func(pattern string) bool {
				ok, err := path.Match(pattern, x.title())
				if err != nil {
					t.Fatalf("FAULTS: %q: %v", pattern, err)
				}
				return ok
			})
			if chosen {
				all = append(all, x)
			}
		}
	}
	if all == nil {
		t.Fatalf("FAULTS=%s names no trial", os.Getenv("FAULTS"))
	}
	return all
}

// TestFaults kills parts at the steps of a plugin's life, and starts them again a second later. All that happens meanwhile is looked at
// from outside, and in the end all is as it is to be. At last a node goes away and never returns.
func TestFaults(t *testing.T) {
	t.Parallel() // most of it is waiting
	trials := selected(t)
	p := startParts(t)
	p.watch = startWatch(t, p.s.Etcd, p.nodes)
	defer func() {
		if t.Failed() { // what the nodes had says why
			p.watch.check(p.nodes)
		}
	}()
	p.startAgents()
	p.controller.start()
	p.install("the first")
	for i, x := range trials {
		start := time.Now()
		p.try(x)
		x.took = time.Since(start)
		p.watch.check(p.nodes)
		t.Logf("%d of %d: %s took %.1f s", i+1, len(trials), x.title(), x.took.Seconds())
		if t.Failed() {
			t.Fatalf("%s failed", x.title())
		}
	}
	p.neverReturns()
}

func (p *parts) try(x *trial) {
	x.begin(p, x)
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		err := x.reached(p, x)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: the moment did not come: %v", x.title(), err)
		}
	}
	x.kill(p)
	p.gate.release()
	time.Sleep(away)
	x.start(p)
	x.end(p, x)
	p.gate.setLying(false)
	p.checkModules()
}
