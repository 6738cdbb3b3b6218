package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// flagCircleKills: one of two replicas is killed every killCircleEvery.
var flagCircleKills = repeats{
	flag.Int("faults.circlekills", 0, "replicas to kill in TestEachCircleHasOneVictim; 0: 6, or 240 in the long form"), 6, 240}

const (
	killCircleEvery = 2500 * time.Millisecond
	rings           = 6 // with two to four tasks each, at a time
	// ringWait is how long each call of a ring waits. No ring may need so long.
	ringWait = 40 * time.Second
)

// TestEachCircleHasOneVictim: tasks each hold a lock and wait for the next one's, on two replicas that are killed one
// after the other. A task whose answer is lost asks the other replica. In each circle one task is refused, and no
// other; it gives way, and all others are granted their locks, before their waits are over.
func TestEachCircleHasOneVictim(t *testing.T) {
	t.Parallel()
	d := deploy(t, builds{normal: program(t), skewed: program(t)})
	s := &ringHarness{T: t, deployment: d, recorder: verify.NewRecorder()}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range rings {
		all.Go(func() {
			random := rand.New(rand.NewPCG(*flagSeed, uint64(i)))
			for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
				s.run(fmt.Sprintf("ring:%d.%d", i, n), 2+random.IntN(3), random)
			}
		})
	}
	for n := range flagCircleKills.count() {
		time.Sleep(killCircleEvery)
		over := s.recorder.MarkFault("kill -9 of a replica")
		r := d.replicas[n%2]
		err := errors.Join(r.kill(), r.start(t.Context()))
		if over(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
	s.check()
	t.Logf("%d circles were broken, the slowest after %v; %d calls lost their answers, %d of them a lease", s.broken,
		s.longest.Round(time.Millisecond), s.lost, s.ended)
	if s.broken < rings {
		t.Error("there were hardly any circles")
	}
}

// A ringHarness is the tasks and what became of them.
type ringHarness struct {
	*testing.T
	*deployment
	recorder *verify.Recorder

	mu           sync.Mutex
	broken, lost int
	ended        int           // leases that ended before their answers came
	longest      time.Duration // until a circle was broken, and all its tasks were done
}

// A ringTask is one task of a ring.
type ringTask struct {
	*ringHarness
	clients [2]paddock.Service
	next    int // of the clients
	holds   lock.Acquire
	waits   lock.Acquire
	err     error // of the wait
}

// run lets n tasks wait in a circle, and checks that one is refused.
func (s *ringHarness) run(prefix string, n int, random *rand.Rand) {
	tasks := make([]*ringTask, n)
	for i := range tasks {
		task, next := fmt.Sprintf("%s.%d", strings.ReplaceAll(prefix, ":", "-"), i), (i+1)%n
		x := &ringTask{ringHarness: s, next: random.IntN(2)}
		x.holds = lock.Acquire{Locks: lock.One(fmt.Sprint(prefix, ":", i)), Holder: task, Task: lock.TaskID(task)}
		x.waits = lock.Acquire{Locks: lock.One(fmt.Sprint(prefix, ":", next)), Holder: task + " waits", Task: lock.TaskID(task + ".part"), Wait: ringWait}
		for r := range x.clients {
			c, err := s.replicas[r].client()
			if err != nil {
				s.Error(err)
				return
			}
			x.clients[r] = s.recorder.Client(s.replicas[r].String(), c)
		}
		tasks[i] = x
	}
	if !inEach(tasks, func(x *ringTask) bool { return x.hold() }) {
		return
	}
	began := time.Now()
	inEach(tasks, func(x *ringTask) bool { return x.waitAndRelease() })
	took := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.longest = s.broken+1, max(s.longest, took)
	victims := 0
	for _, x := range tasks {
		if errors.Is(x.err, lock.ErrDeadlock) {
			victims++
		}
	}
	if victims != 1 || took >= ringWait {
		s.Errorf("of the %d tasks of %s, %d were refused, in %v", n, prefix, victims, took)
	}
}

// inEach calls do for all tasks at once, and returns true if each call has.
func inEach(tasks []*ringTask, do func(*ringTask) bool) bool {
	var all sync.WaitGroup
	done := make([]bool, len(tasks))
	for i, x := range tasks {
		all.Go(func() { done[i] = do(x) })
	}
	all.Wait()
	for _, ok := range done {
		if !ok {
			return false
		}
	}
	return true
}

// hold acquires the lock that the task holds.
func (x *ringTask) hold() bool {
	err := x.acquire(&x.holds)
	if err != nil {
		x.Errorf("%s is free, and an acquire is answered with %v", x.holds.Locks[0].Name, err)
	}
	return err == nil
}

// waitAndRelease waits for the other lock, and releases both.
func (x *ringTask) waitAndRelease() bool {
	x.err = x.acquire(&x.waits)
	switch {
	case x.err == nil:
		x.release(x.waits)
	case !errors.Is(x.err, lock.ErrDeadlock):
		x.Errorf("%s waited for %s, and was answered with %v", x.waits.Holder, x.waits.Locks[0].Name, x.err)
	}
	x.release(x.holds)
	return true
}

// acquire sends the acquire until it is decided. If a lease was granted while its answer was lost, it asks for another,
// as another holder: package verify tells requests apart by their holders.
func (x *ringTask) acquire(a *lock.Acquire) error {
	for ; ; a.Holder += " again" {
		a.LeaseID, a.TTL = lock.LeaseID(uuid.New()), 2*ringWait
		err := x.retried(a.Wait, func(ctx context.Context, s paddock.Service) error {
			_, err := s.Acquire(ctx, *a)
			return err
		})
		if !errors.Is(err, lock.ErrLeaseLost) {
			return err
		}
		x.mu.Lock()
		x.ended++
		x.mu.Unlock()
	}
}

func (x *ringTask) release(a lock.Acquire) {
	err := x.retried(0, func(ctx context.Context, s paddock.Service) error {
		return s.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
	})
	if err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		x.Errorf("a release of %s is answered with %v", a.Locks[0].Name, err)
	}
}

// retried sends the call to one replica and the other until it is decided.
func (x *ringTask) retried(wait time.Duration, send func(context.Context, paddock.Service) error) error {
	ctx, cancel := context.WithTimeout(x.Context(), wait+stepTimeout)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, wait+10*time.Second)
		err := send(one, x.clients[x.next])
		done()
		undecided := errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome)
		if !undecided || ctx.Err() != nil {
			return err
		}
		x.mu.Lock()
		x.lost++
		x.mu.Unlock()
		x.next = 1 - x.next
		sleepFor(ctx, 20*time.Millisecond)
	}
}

// check checks the history: each victim waited in its circle, and no circle was left.
func (s *ringHarness) check() {
	c, err := s.replicas[2].client()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), stepTimeout)
	defer cancel()
	h := s.recorder.History()
	if h.Events, err = verify.Collect(ctx, c, "ring:"); err != nil {
		s.Fatal(err)
	}
	if r := h.Check(verify.CheckOptions{AllowOvertaking: true, AllowWaiters: true}); !r.OK() {
		var text strings.Builder
		if err := r.WriteText(&text); err != nil {
			s.Error(err)
		}
		s.Error(text.String())
	}
}
