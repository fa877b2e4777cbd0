package proxy

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// arrivals tells a call when the backend has sent the whole of its answer: what
// there is then has arrived, and to read it takes no more memory.
type arrivals struct{}

type arrivedKey struct{}

// arrival is of one call.
type arrival struct {
	once sync.Once
	came chan struct{} // closed when the trailer has come
}

func (arrivals) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, last := event.(*stats.InTrailer); last {
		if a, ok := ctx.Value(arrivedKey{}).(*arrival); ok {
			a.once.Do(func() { close(a.came) }) // gRPC may make a call twice, and a broken backend send two
		}
	}
}

func (arrivals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (arrivals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (arrivals) HandleConn(context.Context, stats.ConnStats)                       {}

// awaitRoom waits until the share has room for an answer, and takes it. It takes none
// if the answer has arrived, as a small one soon has, or ctx is done: it need not wait then.
func awaitRoom(ctx context.Context, s *share, arrived <-chan struct{}) bool {
	select {
	case <-arrived:
		return false
	default:
	}
	if s.try(maxAnswer) {
		return true
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-arrived:
			stop()
		case <-ctx.Done():
		}
	}()
	return s.take(ctx, maxAnswer) == nil
}

// sendAnswer sends a message to the caller. held is what it takes of the caller's
// share already. What it takes is given back when the message has left, which may be
// long after the call: a caller that does not read leaves it in gRPC's queue.
func sendAnswer(down grpc.ServerStream, resp *cri.Frame, s *share, held int64) error {
	size := counted(resp)
	if held == 0 && size > 0 {
		if err := s.take(down.Context(), size); err != nil {
			return status.FromContextError(err).Err()
		}
		held = size
	}
	if size < held {
		s.give(held - size)
		held = size
	}
	if held == 0 {
		return down.SendMsg(resp)
	}
	release := sync.OnceFunc(func() { s.give(held) })
	err := down.SendMsg(resp.WhenFreed(release))
	if err != nil {
		release()
	}
	return err
}

// counted is what an answer takes of its caller's share.
func counted(f *cri.Frame) int64 {
	if f.Len() <= small {
		return 0
	}
	return min(int64(f.Len()), maxAnswer)
}
