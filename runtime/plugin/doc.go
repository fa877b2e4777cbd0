// Package plugin defines what a loaded plugin is, whatever runs it, and runs
// several of them as one chain.
//
// It holds the rules that are the same for every kind of plugin: order, what a
// later plugin sees, who owns a field, what a failure does, which of its texts are
// redacted, how long a plugin may take. It knows neither CRI messages nor WebAssembly nor
// gRPC: package intercept gives it events and applies what comes back, packages
// wasm and remote give it plugins.
//
// Ownership: an Event and an Adjustment belong to the call that made them. A
// plugin reads the one and writes the other until its Call returns, and keeps
// neither.
package plugin
