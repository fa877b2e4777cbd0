package main

import (
	"io"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// resultJSON is what came of an event, as JSON has it.
type resultJSON struct {
	Plugin    string                `json:"plugin"`
	Version   string                `json:"version"`
	Event     string                `json:"event"`
	Outcome   string                `json:"outcome"` // for people
	Called    bool                  `json:"called"`
	Rejection *plugin.Rejection     `json:"rejection,omitempty"`
	Error     string                `json:"error,omitempty"` // why the plugin failed
	Changes   []simulate.Difference `json:"changes"`         // of the request; null for what is not there before, or after
	Updates   []updateJSON          `json:"updates"`         // of other containers
	Cgroups   []simulate.Write      `json:"cgroups"`         // files that are written
	Log       []string              `json:"log"`
	Metrics   map[string]int64      `json:"metrics,omitempty"`
	KV        map[string]*string    `json:"kv,omitempty"`      // key-value state that was changed; null for what was deleted
	Refused   []string              `json:"refused,omitempty"` // by host functions
	Missing   []string              `json:"missing,omitempty"` // capabilities, declared and not granted
	Notes     []string              `json:"notes,omitempty"`
	Fuel      int64                 `json:"fuel"`
	HostCalls int64                 `json:"host_calls"`
	TookNS    int64                 `json:"took_ns"`
}

type updateJSON struct {
	Container string                `json:"container"`
	Changes   []simulate.Difference `json:"changes"`
}

// encodeResult writes what came of an event, for programs.
func encodeResult(out io.Writer, res simulate.Result) error {
	r := resultJSON{
		Plugin: res.Manifest.Name, Version: res.Manifest.Version, Event: res.Title, Outcome: verdict(res),
		Called: res.Called, Rejection: res.Rejection,
		Changes: list(res.Changes()), Updates: []updateJSON{}, Cgroups: list(res.Writes), Log: list(res.Lines),
		Metrics: res.Metrics, KV: changedValues(res),
		Refused: res.Refused, Missing: res.Rights.Lacks().Names(), Notes: res.Remarks,
		Fuel: res.Fuel, HostCalls: res.HostCalls, TookNS: res.Took.Nanoseconds(),
	}
	if res.Err != nil {
		r.Error = res.Err.Error()
	}
	for _, u := range res.Updates {
		r.Updates = append(r.Updates, updateJSON{u.GetContainerId(), list(res.Fields(u))})
	}
	return encode(out, r)
}

// list is not null in JSON if it is empty.
func list[T any](all []T) []T { return append([]T{}, all...) }
