package guard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const (
	plays   = 400              // how many seeds are played
	permits = 2                // how many a lock has
	latest  = 40 * time.Second // by which a call is late
	forLong = time.Hour        // for which nobody need wait
)

// TestWhateverHappensTheRulesAreKept plays what seeds say: guards contend over bad lines, calls arrive late, machines are
// suspended, callers cancel, an operator revokes. What counts is the service's own clock. One seed is played again with
// -run 'TestWhateverHappensTheRulesAreKept/seed_17$', and -count 100 since the jitter of guards is not the seed's.
func TestWhateverHappensTheRulesAreKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(plays) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newWorld(t, seed).play(seed) })
		})
	}
}

// A world is some locks, and members who want them.
type world struct {
	*testing.T
	rnd   *rand.Rand
	locks []lock.Service // the service as each of its replicas serves it
	names []string
	modes []lock.Mode
	ttl   time.Duration
	quiet time.Time // nothing goes wrong from then on

	mu     sync.Mutex
	works  map[*work]bool           // that go on
	ousted map[lock.Token]time.Time // by the operator; when the leases would have ended at the latest
	newest map[string]lock.Token    // of those under which works began
}

func newWorld(t *testing.T, seed uint64) *world {
	rnd, m := rand.New(rand.NewPCG(seed, 0)), memlock.New()
	w := &world{
		T: t, rnd: rnd, works: map[*work]bool{}, ousted: map[lock.Token]time.Time{}, newest: map[string]lock.Token{},
		locks: []lock.Service{m.Replica(1), m.Replica(2)}[:1+rnd.IntN(2)],
		names: []string{"a", "b"}[:1+rnd.IntN(2)],
		modes: []lock.Mode{lock.Exclusive, lock.Shared, lock.Permit}[:1+rnd.IntN(3)],
		ttl:   oneOf(rnd, lock.MinTTL, time.Second, 6*time.Second, 30*time.Second),
	}
	w.quiet = time.Now().Add(10*w.ttl + time.Minute)
	return w
}

func oneOf[T any](rnd *rand.Rand, these ...T) T { return these[rnd.IntN(len(these))] }

// upTo returns a duration that is positive and at most d.
func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(rnd.Int64N(int64(d)))
}

// play has everybody try in trouble and then once more in peace, and looks at what is left.
func (w *world) play(seed uint64) {
	var all sync.WaitGroup
	for i := range 2 + w.rnd.Uint64N(4) {
		m := &member{
			Service: oneOf(w.rnd, w.locks...), world: w, holder: fmt.Sprint("member ", i), suspends: w.rnd.IntN(3) == 0,
			rnd: rand.New(rand.NewPCG(seed, 2*i+1)), fate: rand.New(rand.NewPCG(seed, 2*i+2)),
		}
		m.line = &line{Service: m}
		all.Go(m.suffer)
		all.Go(func() {
			for time.Now().Before(w.quiet) {
				time.Sleep(upTo(m.rnd, w.ttl))
				m.try()
			}
			m.attempt(w.names[0], guard.Options{TTL: w.ttl, Wait: guard.Forever}, 3*w.ttl, 0, forLong)
		})
	}
	all.Go(w.revoke)
	all.Wait()
	time.Sleep(2*w.ttl + latest + lock.PlaceRetention + lock.ClaimTimeout)
	for _, name := range w.names {
		w.prove(name)
	}
}

// prove checks that nothing is left of the lock but its history, which is sound.
func (w *world) prove(name string) {
	if l := w.lock(name); l.State != lock.Free || l.Waiters != 0 {
		w.Errorf("in the end the lock is %+v", l)
	}
	var events []lock.Event
	for q, more := (lock.EventQuery{Name: name, Limit: lock.MaxLimit}), true; more; {
		page, err := w.locks[0].Events(context.Background(), q)
		w.must(err)
		events, q.Cursor, more = append(events, page.Items...), page.Next, len(page.Items) > 0
	}
	w.must(verify.Rules{Capacity: permits, AllowOvertaking: true}.Check(events))
}

// lock returns the lock as the service sees it.
func (w *world) lock(name string) lock.Lock {
	l, err := w.locks[0].Lock(context.Background(), name)
	w.must(err)
	return l
}

func (w *world) must(err error) {
	if err != nil {
		w.Error(err)
	}
}

// revoke takes leases away now and then.
func (w *world) revoke() {
	for time.Sleep(upTo(w.rnd, 4*w.ttl)); time.Now().Before(w.quiet); time.Sleep(upTo(w.rnd, 4*w.ttl)) {
		r := lock.Revoke{Name: oneOf(w.rnd, w.names...), Reason: "no reason"}
		if r.Token = w.lock(r.Name).Token; r.Token == 0 {
			continue
		}
		w.mu.Lock()
		w.ousted[r.Token] = time.Now().Add(w.ttl) // no lease ends later
		w.mu.Unlock()
		if _, err := w.locks[0].Revoke(w.Context(), r); !errors.Is(err, lock.ErrTokenMismatch) {
			w.must(err) // else it is over already
		}
		w.look()
	}
}

// A work is one under a lease.
type work struct {
	by     *member
	lease  *guard.Lease
	mode   lock.Mode
	margin time.Duration
	ctx    context.Context
	done   <-chan struct{} // of ctx; it does not look
}

// whole is whether the work may go on for all it knows. Where the machine is suspended at times it looks; else it waits to be told.
func (k *work) whole() bool {
	select {
	case <-k.done:
		return false
	default:
		return !k.by.suspends || k.ctx.Err() == nil
	}
}

// left returns for how long the work may go on by the service's clock, and whether the service has its lease. What a machine
// sleeps passes for its lease only, not on the clock of the test.
func (w *world) left(k *work) (time.Duration, bool) {
	least := k.margin + k.by.unseen(k.lease.Token())
	for _, h := range w.lock(k.lease.Name()).Leases {
		if h.Token == k.lease.Token() && h.Slot == k.lease.Slot() && !h.Revoked {
			return h.Remaining - least, true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.ousted[k.lease.Token()]) - least, false
}

// look finds works that go on for too long, and such that overlap though nobody was ousted.
func (w *world) look() {
	w.mu.Lock()
	going := slices.Collect(maps.Keys(w.works))
	w.mu.Unlock()
	together := map[string][]*work{}
	for _, k := range going {
		switch left, has := w.left(k); {
		case !k.whole():
		case left < 0:
			w.Errorf("%s goes on with token %d %v after the end of its lease less the margin of %v", k.by.holder, k.lease.Token(), -left, k.margin)
		case has:
			together[k.lease.Name()] = append(together[k.lease.Name()], k)
		}
	}
	for name, ks := range together {
		for _, k := range ks[1:] {
			if k.mode != ks[0].mode || k.mode == lock.Exclusive || k.mode == lock.Permit && len(ks) > permits {
				w.Errorf("%d works under %s overlap, the tokens %d and %d among them", len(ks), name, ks[0].lease.Token(), k.lease.Token())
			}
		}
	}
}

// begin notes that a work goes on. Who may work alone has the greatest token, unless it was ousted.
func (w *world) begin(k *work) {
	w.mu.Lock()
	token, name := k.lease.Token(), k.lease.Name()
	if k.whole() && w.ousted[token].IsZero() && k.mode == lock.Exclusive && token <= w.newest[name] {
		w.Errorf("%s begins with token %d after %d", k.by.holder, token, w.newest[name])
	}
	w.works[k], w.newest[name] = true, max(w.newest[name], token)
	w.mu.Unlock()
	w.look()
}

// end notes that a work has ended, and returns whether the service has its lease, and whether it was ousted.
func (w *world) end(k *work) (has, ousted bool) {
	w.look()
	_, has = w.left(k)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.works, k)
	return has, !w.ousted[k.lease.Token()].IsZero()
}

// watch looks at a work in the first instant at which it must not go on.
func (w *world) watch(k *work, ended <-chan struct{}) {
	for left, _ := w.left(k); left >= 0; left, _ = w.left(k) {
		select {
		case <-time.After(left + 1):
		case <-ended:
			return
		}
	}
	w.look()
}

// A member is a guard on a machine of its own, its line to the service, and what is behind that line, where calls can be late.
type member struct {
	lock.Service
	*world
	holder   string
	rnd      *rand.Rand
	fate     *rand.Rand // its troubles'
	line     *line
	suspends bool         // whether its machine ever is suspended
	slept    atomic.Int64 // for how long it was
	seen     sync.Map     // slept when the service last moved a lease's end, by its token
	late     atomic.Int64 // by how much a call is that is sent now
	lates    atomic.Int64 // how many were
	wrong    atomic.Int64 // how often something began or ceased to be wrong: odd while something is
	since    atomic.Int64 // wrong, when the guard last had to clear away what it left
}

// well is whether nothing has been wrong since wrong was that.
func (m *member) well(since int64) bool { return since%2 == 0 && m.wrong.Load() == since }

// suffer has something go wrong now and then.
func (m *member) suffer() {
	for time.Sleep(upTo(m.fate, 4*m.ttl)); time.Now().Before(m.quiet); time.Sleep(upTo(m.fate, 4*m.ttl)) {
		m.wrong.Add(1)
		if m.fate.IntN(4) == 0 {
			m.late.Store(int64(upTo(m.fate, latest)))
		} else {
			m.line.fail(oneOf(m.fate, fault{refuses: true}, fault{swallows: true}, fault{deaf: true}, fault{slow: upTo(m.fate, m.ttl/2)}))
		}
		time.Sleep(upTo(m.fate, m.ttl))
		if m.suspends {
			m.slept.Add(int64(upTo(m.fate, m.ttl)))
		}
		time.Sleep(upTo(m.fate, m.ttl))
		m.late.Store(0)
		m.line.fail(fault{})
		m.wrong.Add(1)
	}
}

// unseen returns for how long the machine was suspended since the service moved the lease's end.
func (m *member) unseen(token lock.Token) time.Duration {
	seen, _ := m.seen.LoadOrStore(token, int64(0))
	return time.Duration(m.slept.Load() - seen.(int64))
}

// carry delivers a call. Of what came of one that is late nobody hears.
func carry[C, T any](ctx context.Context, m *member, c C, call func(context.Context, C) (T, error)) (T, error) {
	deliver := func(ctx context.Context) (T, error) {
		t, err := call(ctx, c)
		if g, ok := any(&t).(*lock.Grant); ok && err == nil {
			if !g.Replayed {
				m.seen.Store(g.Token, m.slept.Load())
			}
			g.Until = g.Until.Add(-m.unseen(g.Token))
		}
		m.look()
		return t, err
	}
	late := m.late.Load()
	if late == 0 {
		return deliver(ctx)
	}
	m.lates.Add(1)
	go func() {
		time.Sleep(time.Duration(late))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // then it is noticed that nobody listens
		defer cancel()
		_, _ = deliver(ctx)
	}()
	<-ctx.Done()
	return *new(T), &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Late.", Cause: context.Cause(ctx)}
}

func (m *member) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return carry(ctx, m, a, m.Service.Acquire)
}

func (m *member) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return carry(ctx, m, r, m.Service.Renew)
}

func (m *member) Release(ctx context.Context, r lock.Release) error {
	_, err := carry(ctx, m, r, func(ctx context.Context, r lock.Release) (any, error) { return nil, m.Service.Release(ctx, r) })
	return err
}

// try attempts what chance says.
func (m *member) try() {
	mode := oneOf(m.rnd, m.modes...)
	o := guard.Options{
		Mode: mode, Capacity: map[lock.Mode]int{lock.Permit: permits}[mode], TTL: m.ttl, Margin: oneOf(m.rnd, 0, m.ttl/3), Grace: oneOf(m.rnd, 0, m.ttl/2),
		MaxHold: oneOf(m.rnd, 0, 0, 0, 2*m.ttl), Wait: oneOf(m.rnd, 0, upTo(m.rnd, m.ttl), time.Minute, guard.Forever),
		Retry: oneOf(m.rnd, -1, 0, time.Minute),
	}
	length, deaf, patience := upTo(m.rnd, 4*m.ttl), oneOf(m.rnd, 0, 0, upTo(m.rnd, m.ttl)), oneOf(m.rnd, forLong, forLong, forLong, upTo(m.rnd, 3*m.ttl))
	m.attempt(oneOf(m.rnd, m.names...), o, length, deaf, patience)
}

// attempt works under a lock, for deaf longer when told to stop, and judges what came of it. Patience that lasts forLong must not end.
func (m *member) attempt(name string, o guard.Options, length, deaf, patience time.Duration) {
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	has, ousted, wrong, lates := true, false, m.wrong.Load(), m.lates.Load()
	m.since.Store(wrong)
	end := time.AfterFunc(patience, func() { m.since.Store(m.wrong.Load()); cancel() })
	defer end.Stop()
	o.Holder = fmt.Sprintf("%s at %v", m.holder, time.Now())
	err := m.do(ctx, name, o, func(ctx context.Context, l *guard.Lease) error {
		k := &work{by: m, lease: l, mode: cmp.Or(o.Mode, lock.Exclusive), margin: cmp.Or(o.Margin, o.TTL/10), ctx: ctx, done: ctx.Done()}
		m.begin(k)
		wrong = m.wrong.Load() // a work that nothing disturbs is not lost
		ended := make(chan struct{})
		defer close(ended)
		go m.watch(k, ended)
		select {
		case <-time.After(length):
		case <-ctx.Done():
			time.Sleep(deaf)
		}
		has, ousted = m.end(k)
		end.Stop()
		m.since.Store(m.wrong.Load())
		return context.Cause(ctx)
	})
	switch well, lost := m.well(wrong), errors.Is(err, lock.ErrLeaseLost); {
	case m.well(m.since.Load()) && (!has && !lost || m.lates.Load() == lates && m.leaves(name, o.Holder)):
		m.Errorf("%s is not told of its loss, or leaves something behind: %v", o.Holder, err)
	case err == nil, lost && (ousted || o.MaxHold > 0), patience < forLong && errors.Is(err, context.Canceled):
	case errors.Is(err, lock.ErrHeld) && o.Wait != guard.Forever:
	case well || patience == forLong && ctx.Err() != nil || !errors.As(err, new(*lock.Error)):
		m.Errorf("%s ended with %v, and all was well: %v", o.Holder, err, well)
	}
}

// do is guard.Do, on a machine that may be suspended at times.
func (m *member) do(ctx context.Context, name string, o guard.Options, work func(context.Context, *guard.Lease) error) error {
	if !m.suspends {
		return guard.Do(ctx, m.line, name, o, work)
	}
	l, err := guard.AcquireSuspended(ctx, m.line, name, o, func() time.Duration { return time.Duration(m.slept.Load()) })
	if err != nil {
		return err
	}
	workCtx, cancel := l.Context(ctx)
	err = errors.Join(work(workCtx, l), l.Err())
	cancel()
	if left := l.Release(ctx); errors.Is(left, lock.ErrLeaseLost) {
		err = errors.Join(err, left)
	}
	return err
}

// leaves is whether the service knows of the holder.
func (m *member) leaves(name, holder string) bool {
	q, err := m.Queue(context.Background(), name)
	m.must(err)
	return slices.ContainsFunc(q.Waiters, func(w lock.WaiterInfo) bool { return w.Holder == holder }) ||
		slices.ContainsFunc(m.lock(name).Leases, func(h lock.LeaseInfo) bool { return h.Holder == holder && !h.Revoked })
}
