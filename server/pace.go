package server

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

// What all streams may write together, in KiB. A write, and an event that is read from the table for one stream, count
// as so many KiB of text, because they take as much processor time, the kernel's part at both ends of a connection on
// one host included.
//
// The numbers need not fit the machine. Measured where they take 6 % of the processors, they take less of faster ones,
// where locks need less, too. A limit that is lower than it could be only delays news: N streams wait for up to N times
// turnKBytes / streamKBytes seconds, divided by the processors, and then get all their news in one write.
const (
	streamKBytes = 100_000 // a second, for each processor
	spareKBytes  = 80_000  // without a wait, after an idle time
	turnKBytes   = 80      // for each write
	eventKBytes  = 8       // for each event that is read for one stream
)

// A pacer delays streams, so that they take only a share of the processors and leave the rest to locks. Streams write
// in turns: the more streams have news, the longer each one waits, and the more it then has to write at once.
type pacer struct{ budget *rate.Limiter } // in KiB

func newPacer() pacer {
	return pacer{rate.NewLimiter(rate.Limit(streamKBytes*runtime.GOMAXPROCS(0)), spareKBytes)}
}

// turn waits until the stream may write. The error is that of ctx.
func (p pacer) turn(ctx context.Context) error { return p.budget.WaitN(ctx, turnKBytes) }

// took delays the next turns. kBytes is at most spareKBytes.
func (p pacer) took(kBytes int) { p.budget.ReserveN(time.Now(), kBytes) }

// exhausted reports whether streams wait for longer than one of them alone ever does.
func (p pacer) exhausted() bool { return p.budget.Tokens() < -spareKBytes }
