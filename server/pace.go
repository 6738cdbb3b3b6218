package server

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

// The share of the processors that streams may take, and the approximate cost of what they do, including the kernel's
// part at both ends of a connection on one host.
const (
	streamShare = 0.06                  // of all processors
	streamBurst = 50 * time.Millisecond // of a processor's time, without a wait

	costOfTurn  = 50 * time.Microsecond // to write what there is to one stream
	costOfKByte = 600 * time.Nanosecond // of the text
	costOfEvent = 5 * time.Microsecond  // to read it for one stream
)

// A pacer delays streams, so that they take only a share of the processors and leave the rest to locks. Streams write
// in turns: the more streams have news, the longer each one waits, and the more it then has to write at once.
type pacer struct{ budget *rate.Limiter } // in nanoseconds of processor time

func newPacer() pacer {
	return pacer{rate.NewLimiter(rate.Limit(streamShare*float64(runtime.GOMAXPROCS(0)*int(time.Second))), int(streamBurst))}
}

// turn waits until the stream may write. The error is that of ctx.
func (p pacer) turn(ctx context.Context) error {
	turn := p.budget.ReserveN(time.Now(), int(costOfTurn))
	wait := turn.Delay()
	if wait == 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		turn.Cancel()
		return ctx.Err()
	}
}

// took adds a cost, which delays the next turns.
func (p pacer) took(cost time.Duration) { p.budget.ReserveN(time.Now(), int(min(cost, streamBurst))) }

// exhausted reports whether streams wait for longer than one of them alone ever does.
func (p pacer) exhausted() bool { return p.budget.Tokens() < -float64(streamBurst) }
