package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A network carries the messages of one worker, each with a fate of its own: so they
// overtake each other. It is nothing that a real one could not do.
type network struct {
	*host
	plan     Plan
	worker   int
	outages  []Interval
	inFlight *sync.WaitGroup // what is under way in the whole world

	mu   sync.Mutex
	rngs map[string]*rand.Rand // by what is sent
}

// hop is how long a message is under way at most when nothing is wrong.
const hop = 12 * time.Millisecond

// A delivery is what becomes of one request and its answer.
type delivery struct {
	to               int // which replica, where any will do
	there, back      time.Duration
	refused          bool
	lost, unanswered bool
	duplicateAfter   time.Duration // after which it arrives once more; zero: it does not
	cut              time.Duration // after which the connection breaks; zero: it does not
	disconnectAfter  time.Duration // until the server notices that nobody listens
}

// delivery draws what becomes of the next request of that kind.
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

// disturb has chance spoil the fate.
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

// undisturbed is whether there is nothing wrong with the fate.
func (f delivery) undisturbed() bool {
	return !f.refused && !f.lost && !f.unanswered && f.duplicateAfter == 0 && f.cut == 0 && f.there <= hop && f.back <= hop
}

// An answer is what comes back.
type answer[T any] struct {
	value T
	err   error
}

// send sends a request to where op is done, and returns where the answer will be. The
// function ends op's context.
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
			ctx, cancel := context.WithTimeout(context.Background(), f.disconnectAfter) // nobody listens to this one
			defer cancel()
			_, _ = op(ctx)
		})
	}
	return answers, cancel
}

// ask sends a request and waits for the answer until then, zero for ever, as long as
// the context is not cancelled. That its deadline passes does not count.
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

// alarm returns what is told of after that long, or never.
func alarm(d time.Duration, ever bool) <-chan time.Time {
	if !ever {
		return nil
	}
	return time.After(max(d, 1)) // one that is over when it is made can crash the race detector's runtime
}

func newError(code lock.Code, detail string) error { return &lock.Error{Code: code, Detail: detail} }
