package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// PostCreateContainer comes after a container was created.
type PostCreateContainer struct {
	Container
	containerFiles
}

// PreStartContainer comes before a container is started.
type PreStartContainer struct {
	Container
	containerFiles
	refusal
}

// PostStartContainer comes after a container was started.
type PostStartContainer struct {
	Container
	containerFiles
}

// PreUpdateContainerResources comes before a container's resources are changed.
// Its getters show the container with the request applied; each value that a handler
// sets goes into the request.
type PreUpdateContainerResources struct{ MutableContainer }

// PostUpdateContainerResources comes after a container's resources were changed.
type PostUpdateContainerResources struct {
	Container
	containerFiles
}

// PreStopContainer comes before a container is stopped, which nothing can refuse.
type PreStopContainer struct {
	Container
	timed
}

// PostStopContainer comes after a container was stopped.
type PostStopContainer struct {
	Container
	timed
}

// PreRemoveContainer comes before a container is removed, which nothing can refuse.
type PreRemoveContainer struct{ Container }

// PostRemoveContainer comes after a container was removed.
type PostRemoveContainer struct{ Container }

// PreExec comes before a stream to a command in a container is opened.
type PreExec struct {
	Container
	command
	terminal
	refusal
}

// PostExec comes after the address of a stream to a command was given out.
type PostExec struct {
	Container
	command
	terminal
}

// PreExecSync comes before a command is run in a container, such as a probe's.
type PreExecSync struct {
	Container
	command
	timed
	refusal
}

// PostExecSync comes after a command was run in a container.
type PostExecSync struct {
	Container
	command
	timed
}

// ExitCode returns what the command ended with.
func (*PostExecSync) ExitCode() int64 { return readInt64("ExitCode", abi.Event, abi.EventExitCode) }

// PreAttach comes before a stream to a container's own process is opened.
type PreAttach struct {
	Container
	terminal
	refusal
}

// PostAttach comes after the address of a stream to a container's process was given out.
type PostAttach struct {
	Container
	terminal
}

// PreCheckpointContainer comes before a container is checkpointed.
type PreCheckpointContainer struct {
	Container
	archive
	timed
	refusal
}

// PostCheckpointContainer comes after a container was checkpointed.
type PostCheckpointContainer struct {
	Container
	archive
	timed
}

// command is what a hook of Exec and ExecSync embeds.
type command struct{}

// ExecCommand returns the command and its arguments.
func (command) ExecCommand() []string {
	return readList("ExecCommand", abi.Event, abi.EventCommand)
}

// terminal is what a hook of Exec and Attach embeds.
type terminal struct{}

// TTY tells whether the stream is one of a terminal.
func (terminal) TTY() bool { return readInt64("TTY", abi.Event, abi.EventTTY) != 0 }

// Stdin tells whether the caller sends input.
func (terminal) Stdin() bool { return readInt64("Stdin", abi.Event, abi.EventStdin) != 0 }

// timed is what a hook of a call with a timeout embeds.
type timed struct{}

// Timeout returns the seconds that the runtime is given, 0 for no limit.
func (timed) Timeout() int64 { return readInt64("Timeout", abi.Event, abi.EventTimeout) }
