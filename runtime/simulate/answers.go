package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// answers answer a plugin as another one was answered in a recorded call: by the question, not by the order. A question
// that was asked several times has its answers in their order, and the last one again.
type answers struct {
	call     *recording.Call
	env      bool
	has      abi.CapabilitySet
	recorded map[string][]*recording.Asked
	conflict map[string]bool // targets that an earlier plugin had set
	values   *plugin.Txn     // that the plugin has written in this call
	wrote    map[string]bool // their keys

	is      want
	own     []string // values that the plugin has given to variables
	unknown []string
}

func (a *answers) Ask(q *plugin.Question) bool {
	asked := recording.Spell(*q, a.env, nil)
	known := a.find(&asked)
	switch name := q.Function.Name; {
	case name == "reject", needs(q)&^a.has != 0: // the host denies what the plugin lacks a capability for
		return false
	case strings.HasPrefix(name, "kv_"):
		a.askValue(q, known)
	case known != nil:
		q.Errno, q.Number, q.Data = known.Question.Errno, known.Question.Number, known.Question.Data
	case recording.Writes(q):
		object := abi.Object(q.Args[0].Number)
		if object >= abi.FirstHandle && a.call.Handles[recording.HandleKey(object)] == "" {
			a.miss(q)
			return true
		}
		target, _ := askedChange(q, a.env, a.call.Handles)
		if !a.conflict[target] {
			return false // the host's checks answer a change that nobody asked for before
		}
		q.Errno = abi.Conflict // an earlier plugin that had set the target has set it for this one, too
	case name == "map_get" && a.lookUp(q):
	default:
		a.miss(q)
	}
	return true
}

// find returns the next answer to a question; nil if there is none that counts for this plugin.
func (a *answers) find(asked *recording.Asked) *recording.Asked {
	key := asked.Key()
	all := a.recorded[key]
	if len(all) == 0 {
		return nil
	}
	if len(all) > 1 {
		a.recorded[key] = all[1:]
	}
	first := all[0]
	q, writes := &first.Question, recording.Writes(&first.Question)
	if first.Hidden && !writes {
		return nil
	}

	// A denial does not count if it may have been for what the recorded plugin lacked: this one has all that it needs. Left out
	// are cgroup files of the event's own objects: a recording does not have what the plugin declared, and such a denial
	// may be for the file.
	if q.Errno == abi.Denied && (len(q.Args) < 2 || needs(q) != 0) {
		return nil
	}
	return first
}

// needs are the capabilities that a question needs beside that of its function.
func needs(q *plugin.Question) (all abi.CapabilitySet) {
	if len(q.Args) < 2 {
		return 0
	}
	writes, field := recording.Writes(q), abi.Field(q.Args[1].Number)
	if writes && abi.Object(q.Args[0].Number) >= abi.FirstHandle {
		all = abi.CapabilitySetOf(abi.UpdateOthers)
	}
	info := plugin.FieldOf(q.Kind, field)
	switch {
	case q.Function.Name == "withdraw" && field == 0: // a cgroup file
		all |= abi.CapabilitySetOf(abi.CgroupWrite)
	case info == nil:
	case writes:
		all |= abi.CapabilitySetOf(info.Writing)
	default:
		all |= abi.CapabilitySetOf(info.Reading)
	}
	return all & abi.AllCapabilities
}

// miss notes a question that nobody can answer.
func (a *answers) miss(q *plugin.Question) {
	asked := recording.Spell(*q, a.env, nil)
	a.unknown = append(a.unknown, plugin.Printable(asked.Key(), maxAsked))
	q.Errno = abi.NotFound
}

const maxAsked = 200 // bytes that are shown of a question

// askValue answers from what the plugin has written in this call, and else from what was read.
func (a *answers) askValue(q *plugin.Question, known *recording.Asked) {
	key := q.Args[0].Text
	switch name := q.Function.Name; {
	case name != "kv_get" && known != nil && known.Question.Errno != abi.OK:
		q.Errno = known.Question.Errno
	case name == "kv_set":
		if q.Errno = a.values.Set(key, q.Args[1].Text); q.Errno == abi.OK {
			a.wrote[key] = true
		}
	case name == "kv_del":
		a.values.Delete(key)
		a.wrote[key] = true
	case a.wrote[key]:
		var value string
		value, q.Errno = a.values.Get(key)
		q.Data = []byte(value)
	case known != nil:
		q.Errno, q.Data = known.Question.Errno, known.Question.Data
	default:
		a.miss(q)
	}
}

// lookUp answers map_get from the whole map, if that was read, and if what was left out of it is not what is asked for.
func (a *answers) lookUp(q *plugin.Question) bool {
	for i := range a.call.Asked {
		asked := &a.call.Asked[i]
		of := &asked.Question
		if of.Function.Name != "map_dump" || of.Errno != abi.OK || !slices.Equal(of.Args, q.Args[:2]) {
			continue
		}
		entries := map[string]string{}
		abi.EachEntry(string(of.Data), func(k, v string) bool { entries[k] = v; return true })
		hidden := func(text string) bool { return asked.Hidden && strings.Contains(text, plugin.Redacted) }
		switch value, found := entries[q.Args[2].Text]; {
		case found && hidden(value):
		case found:
			q.Errno, q.Data = abi.OK, []byte(value)
			return true
		case asked.Hidden && len(entries) == 0, slices.ContainsFunc(slices.Collect(maps.Keys(entries)), hidden):
		default:
			q.Errno = abi.NotFound
			return true
		}
	}
	return false
}

func (a *answers) Answered(q *plugin.Question) {
	a.is.add(q, a.env, a.call.Handles)
	a.own = append(a.own, recording.OwnVariables([]plugin.Question{*q})...)
}
func (a *answers) End(error) {}

// askedChange returns the target and the value of a change, as fixtures have them.
func askedChange(of *plugin.Question, env bool, handles map[string]string) (target, value string) {
	q := recording.Spell(*of, env, nil).Question
	text := func(i int) string { return q.Args[i].Text }
	c := plugin.Change{Object: abi.Object(q.Args[0].Number)}
	if c.Object >= abi.FirstHandle {
		c.Of = q.Kind
	}
	if q.Function.Name != "cgroup_set" && len(q.Args) > 1 {
		c.Field = abi.Field(q.Args[1].Number)
	}
	switch q.Function.Name {
	case "kv_set":
		return "kv[" + strconv.Quote(text(0)) + "]", text(1)
	case "kv_del":
		return "kv[" + strconv.Quote(text(0)) + "]", fixture.Deleted
	case "set_i64":
		c.Op, c.Int = plugin.SetInt64, q.Args[2].Number
	case "set_bytes":
		c.Op, c.Text = plugin.SetText, text(2)
	case "map_set":
		c.Op, c.Key, c.Text = plugin.SetEntry, text(2), text(3)
	case "map_del":
		c.Op, c.Key = plugin.DeleteEntry, text(2)
	case "list_set":
		c.Op, c.Text = plugin.SetList, text(2)
	case "list_add":
		c.Op, c.Text = plugin.AddElement, text(2)
		c.Key = elementKey(&c)
	case "list_del":
		c.Op, c.Key = plugin.DeleteElement, text(2)
	case "withdraw":
		c.Op, c.Key = plugin.Withdraw, text(2)
	case "cgroup_set":
		c.Op, c.Key, c.Text = plugin.WriteFile, text(1), text(2)
	}
	target = c.Target()
	if name := handles[recording.HandleKey(c.Object)]; name != "" {
		target = strings.Replace(target, "other "+c.Kind().String(), name, 1)
	}
	return target, changeText(c)
}

// elementKey is the key of an element of a set.
func elementKey(c *plugin.Change) (key string) {
	for _, r := range abi.Records {
		if r.Object == c.Kind() && r.Field == c.Field {
			abi.EachEntry(c.Text, func(k, v string) bool {
				if k == r.Key {
					key = v
				}
				return true
			})
			return key
		}
	}
	return c.Text
}

// playedEvent is what the host itself knows of a recorded call. What a plugin asks is answered by answers.
type playedEvent struct {
	plugin.NoEvent
	call *recording.Call
}

func (e playedEvent) Hook() abi.Hook  { return e.call.Hook }
func (e playedEvent) Time() time.Time { return time.Unix(0, e.call.Time) }

// Text implements plugin.Event. The plugin's random numbers follow from these two.
func (e playedEvent) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	switch c := e.call; {
	case o == abi.Pod && f == abi.PodUID && c.Pod != nil:
		return c.Pod.UID, abi.OK
	case o == abi.Container && f == abi.ContainerName && c.Container != nil:
		return c.Container.Name, abi.OK
	}
	return "", abi.NotFound
}

func (e playedEvent) Kind(o abi.Object) abi.Object {
	name := e.call.Handles[recording.HandleKey(o)]
	for _, kind := range []abi.Object{abi.Pod, abi.Container} {
		if strings.HasPrefix(name, kind.String()+"(") {
			return kind
		}
	}
	return o
}

func (e playedEvent) Own(o abi.Object) bool {
	own, name := e.call.Pod, e.call.Handles[recording.HandleKey(o)]
	kind := e.Kind(o)
	if kind == abi.Container {
		own = e.call.Container
	}
	return own != nil && own.ID != "" && name == kind.String()+"("+own.ID+")"
}

func (playedEvent) Within(abi.Object, *abi.Match) bool { return true }
