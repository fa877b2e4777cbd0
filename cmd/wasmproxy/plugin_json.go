package main

import (
	"io"

	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// resultJSON is what came of an event, as JSON has it.
type resultJSON struct {
	Plugin    string           `json:"plugin"`
	Version   string           `json:"version"`
	Event     string           `json:"event"`
	Outcome   string           `json:"outcome"` // for people
	Called    bool             `json:"called"`
	Rejection *rejectionJSON   `json:"rejection,omitempty"`
	Error     string           `json:"error,omitempty"` // why the plugin failed
	Changes   []changeJSON     `json:"changes"`         // of the request
	Updates   []updateJSON     `json:"updates"`         // of other containers
	Cgroups   []changeJSON     `json:"cgroups"`         // files that are written
	Log       []string         `json:"log"`
	Metrics   map[string]int64 `json:"metrics,omitempty"`
	Refused   []string         `json:"refused,omitempty"` // by host functions
	Missing   []string         `json:"missing,omitempty"` // capabilities, declared and not granted
	Notes     []string         `json:"notes,omitempty"`
	Fuel      int64            `json:"fuel"`
	HostCalls int64            `json:"host_calls"`
	TookNS    int64            `json:"took_ns"`
}

type rejectionJSON struct {
	Code   uint32 `json:"code"`
	Reason string `json:"reason"`
}

// changeJSON has null for what is not there before, or after.
type changeJSON struct {
	Path   string  `json:"path"`
	Before *string `json:"before"`
	After  *string `json:"after"`
}

type updateJSON struct {
	Container string       `json:"container"`
	Changes   []changeJSON `json:"changes"`
}

// encodeResult writes what came of an event, for programs.
func encodeResult(out io.Writer, res simulate.Result) error {
	r := resultJSON{
		Plugin: res.Manifest.Name, Version: res.Manifest.Version, Event: res.Title, Outcome: verdict(res), Called: res.Called,
		Changes: changesJSON(res.Changes()), Updates: []updateJSON{}, Cgroups: []changeJSON{}, Log: append([]string{}, res.Lines...),
		Refused: res.Refused, Missing: res.Rights.Lacks().Names(), Notes: res.Remarks,
		Fuel: res.Fuel, HostCalls: res.HostCalls, TookNS: res.Took.Nanoseconds(),
	}
	if res.Rejection != nil {
		r.Rejection = &rejectionJSON{res.Rejection.Code, res.Rejection.Reason}
	}
	if res.Err != nil {
		r.Error = res.Err.Error()
	}
	for _, u := range res.Updates {
		r.Updates = append(r.Updates, updateJSON{u.GetContainerId(), changesJSON(res.Fields(u))})
	}
	for _, w := range res.Writes {
		r.Cgroups = append(r.Cgroups, changeJSON{w.Path, &w.Before, &w.After})
	}
	for _, s := range res.Metrics {
		if r.Metrics == nil {
			r.Metrics = map[string]int64{}
		}
		r.Metrics[s.Name] = s.Value
	}
	return encode(out, r)
}

func changesJSON(all []simulate.Difference) []changeJSON {
	changes := []changeJSON{}
	for _, d := range all {
		c := changeJSON{Path: d.Path}
		if d.HadBefore {
			c.Before = &d.Before
		}
		if d.HasNow {
			c.After = &d.After
		}
		changes = append(changes, c)
	}
	return changes
}
