package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A network carries the messages of one worker. Each message has its own delay, so messages overtake each other. It
// does nothing that a real network could not do.
type network struct {
	*host
	plan     Plan
	worker   int
	outages  []Interval
	inFlight *sync.WaitGroup // messages under way in the whole world

	mu   sync.Mutex
	rngs map[string]*rand.Rand // by kind of request
}

// hop is the longest delay of a message while nothing is wrong.
const hop = 12 * time.Millisecond

// A delivery is what happens to one request and its answer.
type delivery struct {
	to               int // the replica that receives it
	there, back      time.Duration
	refused          bool
	lost, unanswered bool
	duplicateAfter   time.Duration // when it arrives a second time; zero: it does not
	cut              time.Duration // when the connection breaks; zero: it does not
	disconnectAfter  time.Duration // until the server notices that the client is gone
}

// delivery draws what happens to the next request of that kind.
func (n *network) delivery(what string) delivery {
	n.mu.Lock()
	defer n.mu.Unlock()
	rnd := n.rngs[what]
	if rnd == nil {
		rnd = newRNG(n.plan.Seed, string(rune('a'+n.worker))+what)
		n.rngs[what] = rnd
	}
	f := delivery{to: rnd.IntN(replicas), there: randomDuration(rnd, hop), back: randomDuration(rnd, hop)}
	f.disconnectAfter = f.back
	now := n.now()
	if n.dead() {
		f.lost = true
		return f
	}
	if now >= n.plan.Quiet {
		return f
	}
	n.disturb(&f, rnd)
	for _, o := range n.outages {
		if now >= o.From && now < o.To {
			f.refused, f.lost, f.unanswered = o.Fault == Refused, f.lost || o.Fault == Dropped, f.unanswered || o.Fault == NoAnswer
		}
	}
	return f
}

// disturb adds random faults to the delivery.
func (n *network) disturb(f *delivery, rnd *rand.Rand) {
	longest := 2 * n.plan.TTL
	for _, way := range []*time.Duration{&f.there, &f.back} {
		if late := randomDuration(rnd, longest); occurs(rnd, n.plan.Late) {
			*way += late
		}
	}
	f.lost, f.unanswered = occurs(rnd, n.plan.Lost), occurs(rnd, n.plan.Lost)
	if again := randomDuration(rnd, longest); occurs(rnd, n.plan.Twice) {
		f.duplicateAfter = again
	}
	if cut := randomDuration(rnd, n.plan.TTL); occurs(rnd, n.plan.Cut) {
		f.cut = cut
	}
	if half := randomDuration(rnd, 5*time.Second); f.unanswered || f.cut > 0 {
		f.disconnectAfter += half
	}
}

// undisturbed reports whether the delivery has no fault.
func (f delivery) undisturbed() bool {
	return !f.refused && !f.lost && !f.unanswered && f.duplicateAfter == 0 && f.cut == 0 && f.there <= hop && f.back <= hop
}

// An answer is what a request returns.
type answer[T any] struct {
	value T
	err   error
}

// send sends a request to where op runs, and returns the channel of the answer. The function that it returns cancels
// op's context.
func send[T any](n *network, f delivery, op func(context.Context) (T, error)) (<-chan answer[T], context.CancelFunc) {
	answers := make(chan answer[T], 1)
	ctx, cancel := context.WithCancel(context.Background())
	if f.refused {
		op = func(context.Context) (t T, err error) { return t, newError(lock.ErrUnavailable, "Connection refused.") }
	}
	if !f.lost {
		n.inFlight.Go(func() {
			time.Sleep(f.there)
			t, err := op(ctx)
			time.Sleep(f.back)
			if !f.unanswered {
				answers <- answer[T]{t, err}
			}
		})
	}
	if f.duplicateAfter > 0 && !f.refused {
		n.inFlight.Go(func() {
			time.Sleep(f.there + f.duplicateAfter)
			ctx, cancel := context.WithTimeout(context.Background(), f.disconnectAfter) // no client waits for this answer
			defer cancel()
			_, _ = op(ctx)
		})
	}
	return answers, cancel
}

// ask sends a request and waits for the answer until then (zero: without bound), unless the context is cancelled. Its
// deadline is ignored.
func ask[T any](ctx context.Context, n *network, thread time.Duration, f delivery, until time.Time, op func(context.Context) (T, error)) (T, error) {
	answers, cancel := send(n, f, op)
	over, cut := alarm(time.Until(until), !until.IsZero()), alarm(f.cut, f.cut > 0)
	var a answer[T]
	for done := ctx.Done(); ; {
		select {
		case a = <-answers:
			cancel()
		case <-over:
			a.err = newError(lock.ErrUnknownOutcome, "No answer came.")
		case <-cut:
			a.err = newError(lock.ErrUnknownOutcome, "The connection broke.")
		case <-done:
			if done = nil; ctx.Err() == context.DeadlineExceeded {
				continue
			}
			a.err = newError(lock.ErrUnknownOutcome, "It was given up.")
		}
		time.AfterFunc(f.disconnectAfter, cancel)
		n.awake(thread)
		return a.value, a.err
	}
}

// alarm returns a channel that is ready after d, or nil.
func alarm(d time.Duration, ever bool) <-chan time.Time {
	if !ever {
		return nil
	}
	return time.After(max(d, 1)) // a timer without a duration can crash the runtime of the race detector
}

func newError(code lock.Code, detail string) error { return &lock.Error{Code: code, Detail: detail} }
