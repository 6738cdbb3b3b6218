package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// seeds is how many random histories are recorded.
const seeds = 30

func TestRandomHistoriesWithLostAnswersPass(t *testing.T) {
	t.Parallel()
	examined := map[string]int{}
	unknown := 0
	for seed := range uint64(seeds) {
		h := recordRandom(t, seed)
		r := h.Check(verify.CheckOptions{AllowOvertaking: true})
		if !r.OK() {
			t.Fatalf("seed %d:\n%s", seed, text(t, r))
		}
		for _, c := range r.Checks {
			examined[c.Name] += c.Examined
		}
		for _, c := range h.Calls {
			if c.Outcome() == verify.Unknown {
				unknown++
			}
		}
	}
	for name, n := range examined {
		if n < 100 && name != bySessions && name != byDeadlocks && name != byCircles && name != byTrees { // the workload has them
			t.Errorf("%s: only %d cases", name, n)
		}
	}
	if unknown < 100 {
		t.Errorf("only %d answers were lost", unknown)
	}
}

// recordRandom records clients that contend for a few locks over connections that lose calls and
// answers.
func recordRandom(t *testing.T, seed uint64) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		m, rec := memlock.New(), verify.NewRecorder()
		var all sync.WaitGroup
		for i := range 8 {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			link := &lossy{Service: m.Replica(lock.Replica(1 + i%2)), rnd: rand.New(rand.NewPCG(seed, uint64(100+i)))}
			w := &worker{Service: rec.Client(fmt.Sprint("replica ", 1+i%2), link), rnd: rnd,
				name: fmt.Sprintf("%d of seed %d", i, seed)}
			all.Go(func() {
				for n := range 12 {
					w.turn(t.Context(), n)
				}
			})
		}
		working, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		readers.Go(func() { pollEvents(working, t, rec, m.Replica(2)) })
		readers.Go(func() { watchLoop(working, rec.Client("replica 1", m.Replica(1))) })
		all.Wait()
		time.Sleep(time.Minute)
		stop()
		readers.Wait()
		h = rec.History()
		var err error
		if h.Events, err = verify.Collect(t.Context(), m.Replica(1), "random:"); err != nil {
			t.Fatal(err)
		}
	})
	return h
}

// pollEvents reads events page by page until ctx ends.
func pollEvents(ctx context.Context, t *testing.T, rec *verify.Recorder, s lock.Service) {
	poller := rec.Subscribe(verify.Polling, "random:")
	for q := (lock.EventQuery{Prefix: "random:", Cursor: lock.CursorNow, Wait: time.Second}); ctx.Err() == nil; {
		poller.Requested("replica 2", q.Cursor)
		page, err := s.Events(ctx, q)
		if err == nil {
			poller.Received(page)
			q.Cursor = page.Next
		} else if ctx.Err() == nil {
			t.Error(err)
		}
		poller.Ended(err)
	}
}

// watchLoop reads a lock whenever it has changed until ctx ends.
func watchLoop(ctx context.Context, s lock.Service) {
	for w := (lock.Watch{Name: "random:0", Wait: 10 * time.Second}); ctx.Err() == nil; {
		if l, err := s.Watch(ctx, w); err == nil {
			w.Seen = l.Version()
		}
	}
}

// A lossy service loses requests and answers.
type lossy struct {
	lock.Service
	rnd *rand.Rand
}

func (l *lossy) maybeLose(do func() error) error {
	dice := l.rnd.IntN(16)
	time.Sleep(time.Duration(l.rnd.IntN(5)) * time.Millisecond)
	if dice == 0 {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "It was lost on its way there."}
	}
	err := do()
	time.Sleep(time.Duration(l.rnd.IntN(5)) * time.Millisecond)
	if dice == 1 {
		return &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Its answer was lost."}
	}
	return err
}

func (l *lossy) Acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	err = l.maybeLose(func() (err error) { g, err = l.Service.Acquire(ctx, a); return err })
	return g, err
}

func (l *lossy) Renew(ctx context.Context, r lock.Renew) (g lock.Grant, err error) {
	err = l.maybeLose(func() (err error) { g, err = l.Service.Renew(ctx, r); return err })
	return g, err
}

func (l *lossy) Release(ctx context.Context, r lock.Release) error {
	return l.maybeLose(func() error { return l.Service.Release(ctx, r) })
}

func (l *lossy) Revoke(ctx context.Context, r lock.Revoke) (k lock.Lock, err error) {
	err = l.maybeLose(func() (err error) { k, err = l.Service.Revoke(ctx, r); return err })
	return k, err
}

func (l *lossy) WriteFenced(ctx context.Context, w lock.FencedWrite) (f lock.FencedValue, err error) {
	err = l.maybeLose(func() (err error) { f, err = l.Service.WriteFenced(ctx, w); return err })
	return f, err
}

// A worker makes random calls, one after the other.
type worker struct {
	lock.Service
	rnd  *rand.Rand
	name string
}

func (w *worker) oneIn(n int) bool { return w.rnd.IntN(n) == 0 }

func (w *worker) rest(most time.Duration) { time.Sleep(time.Duration(w.rnd.Int64N(int64(most)))) }

// turn acquires a lock, uses the lease and releases it, unless chance says otherwise.
func (w *worker) turn(ctx context.Context, n int) {
	lockNumber := w.rnd.IntN(3)
	a := lock.Acquire{
		Name: fmt.Sprint("random:", lockNumber), LeaseID: lock.LeaseID(uuid.New()),
		Holder: fmt.Sprintf("worker %s, turn %d", w.name, n),
		Mode:   []lock.Mode{lock.Exclusive, lock.Shared, lock.Permit}[lockNumber], TTL: time.Second,
		Wait: time.Duration(w.rnd.IntN(3)) * time.Second, KeepPlace: w.oneIn(4),
		Grace: time.Duration(w.rnd.IntN(2)) * 300 * time.Millisecond,
	}
	switch {
	case a.Mode == lock.Permit:
		a.Capacity = 2
	case w.oneIn(4):
		a.Mode = lock.Exclusive
	}
	if w.oneIn(6) {
		a.MaxHold = 1500 * time.Millisecond
	}
	if w.oneIn(4) {
		a.Set = []lock.Member{{Name: a.Name, Mode: a.Mode, Capacity: a.Capacity}, {Name: fmt.Sprint("random:", (lockNumber+1)%3)}}
		if a.Set[1].Name == "random:2" {
			a.Set[1].Mode, a.Set[1].Capacity = lock.Permit, 2
		}
		a.Name, a.Mode, a.Capacity = "", 0, 0
	}
	g, err := w.Acquire(ctx, a)
	for range 2 {
		if err != nil && !errors.Is(err, lock.ErrLeaseLost) && w.oneIn(2) {
			g, err = w.Acquire(ctx, a)
		}
	}
	for err == nil && !w.oneIn(3) {
		w.rest(time.Second)
		err = w.useLease(ctx, a, g)
	}
	if !w.oneIn(8) {
		_ = w.Release(ctx, lock.Release{Name: a.Name, Set: setOf(a), LeaseID: a.LeaseID}) // the answer is recorded
	}
	w.readAndRevoke(ctx, a.Names()[0])
}

// setOf returns the locks of a set, nil for one lock.
func setOf(a lock.Acquire) []string {
	if a.Set == nil {
		return nil
	}
	return a.Names()
}

// useLease makes a random call under the lease.
func (w *worker) useLease(ctx context.Context, a lock.Acquire, g lock.Grant) error {
	var err error
	switch w.rnd.IntN(4) {
	case 0, 1:
		r := lock.Renew{Name: a.Name, Set: setOf(a), LeaseID: a.LeaseID}
		if w.oneIn(4) {
			r.TTL = time.Duration(500+w.rnd.IntN(1000)) * time.Millisecond
		}
		_, err = w.Renew(ctx, r)
	case 2:
		_, err = w.WriteFenced(ctx, lock.FencedWrite{
			Key: fmt.Sprintf("%s:%d", g.Name, g.Slot), Lock: g.Name, Token: g.Token, Slot: g.Slot,
			Value: json.RawMessage(fmt.Sprint(w.rnd.Int64())),
		})
	default:
		_, err = w.VerifyToken(ctx, lock.Verify{Name: g.Name, Token: g.Token})
	}
	return err
}

// readAndRevoke reads a lock and may revoke its lease.
func (w *worker) readAndRevoke(ctx context.Context, name string) {
	l, err := w.Lock(ctx, name)
	for err == nil && l.Token != 0 && w.oneIn(6) {
		r := lock.Revoke{Name: name, Token: l.Token, Reason: fmt.Sprintf("because of %s %d", w.name, w.rnd.Int64()),
			SkipGrace: w.oneIn(3)}
		_, err = w.Revoke(ctx, r)
		w.rest(400 * time.Millisecond)
	}
	if err == nil {
		_, _ = w.ReadFenced(ctx, name+":1") // the answer is recorded
	}
}
