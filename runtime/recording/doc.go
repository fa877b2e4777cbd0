// Package recording has the format of recordings of plugins: what a plugin asked in each call, what it was answered, and
// how the call ended, one line of JSON for each call. docs/changing-plugins.md describes the format. A [Recorder] writes
// it while a plugin is called, and [Read] reads it.
//
// It plays nothing: package simulate does.
package recording
