package workqueue

// Trigger starts work in the background: whoever does the work receives from it. Several notifications before the work
// begins are one. It is safe for concurrent use.
type Trigger chan struct{}

// NewTrigger returns a Trigger that was not notified.
func NewTrigger() Trigger { return make(Trigger, 1) }

// Notify has the work done, and does not wait for it.
func (t Trigger) Notify() {
	select {
	case t <- struct{}{}:
	default:
	}
}
