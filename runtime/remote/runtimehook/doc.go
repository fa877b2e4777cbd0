// Package runtimehook is Koordinator's RuntimeHookService: its messages, generated from
// api.proto. It holds no code of its own; package remote calls the service's methods by
// their names, and says what is sent and what an answer means.
//
// A process links either this package or Koordinator's own, not both: protobuf
// allows one registration of the names that they share.
package runtimehook

//go:generate sh generate.sh
