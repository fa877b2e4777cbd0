// Package runtimehook is Koordinator's RuntimeHookService: messages, client and
// server, generated from api.proto. It holds no code of its own; what is sent
// and what an answer means is package remote.
//
// A process links either this package or Koordinator's own, not both: protobuf
// allows one registration of the names that they share.
package runtimehook

//go:generate sh generate.sh
