// Package proxy serves CRI on one socket by calling it on another.
//
// No service is registered: one handler carries every method of every service,
// those of the future too, as frames of bytes. The caller's metadata, deadline
// and cancellation go to the backend; the backend's headers, messages, trailers
// and status come back unchanged. Nothing is added, and no call is repeated.
// Where a [cri.Router] names an interceptor for a unary method, the interceptor
// gets the request and decides; the rest passes as for any other method.
//
// Large answers wait until there is room for them: on each connection, and in all,
// they take a bounded part of the memory. Compressed messages are refused.
//
// The package knows no CRI message. What a hook is and does to a message is
// package intercept.
package proxy
