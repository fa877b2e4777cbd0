// Package remote runs plugins that are processes of their own: hook servers
// that speak Koordinator's RuntimeHookService over gRPC on a unix socket.
//
// It turns an event into a request, and the difference between the request and
// the response into an adjustment: a server that echoes what it was sent has
// set nothing. It does not find hook servers (package registry does), knows of
// CRI's messages the resources and the metadata of a pod alone, which Koordinator's
// protocol has copied, and decides neither order nor failure policy nor time budget
// (package plugin does).
package remote
