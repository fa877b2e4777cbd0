package observe

import "time"

// HandedOver says that another process has taken the place of this one, which ends with the calls
// in flight.
type HandedOver struct {
	occurrence
	PID  int // of the other process
	Took time.Duration
}

// TookOver is HandedOver in the other process.
type TookOver struct {
	occurrence
	PID  int // of the process before
	Took time.Duration
}

// HandoverFailed says that no other process could take the place of this one, which goes on.
type HandoverFailed struct {
	occurrence
	Err error
}

// SuccessorGone says that another process has taken the place of this one, and could not be told to
// begin: probably it has ended. This process takes no new calls.
type SuccessorGone struct {
	occurrence
	PID int // of the other process
	Err error
}

// CallNotLeft says that a call ended after another process had taken the place of this one, and
// that its post hook could not be left to that.
type CallNotLeft struct {
	occurrence
	Method string
	Err    error
}
