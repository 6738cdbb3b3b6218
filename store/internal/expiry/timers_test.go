package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// decided is the outcome of a decision made now that leaves the locks due in d, or never if d is zero.
func decided(now time.Time, d time.Duration, names ...string) *row.Outcome {
	o := &row.Outcome{Decision: lock.Decision{Now: now}, Began: now}
	for _, name := range names {
		o.Locks = append(o.Locks, lock.Record{Name: name})
	}
	if d > 0 {
		o.Due = now.Add(d)
	}
	return o
}

func openDB(t *testing.T, url string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop(); db.Close() })
	return db
}

// dueIn returns the locks that become due in d, of the time of a synctest bubble.
func dueIn(w *Timers, d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	return w.takeDue()
}

func TestLocksAreDueInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := New(nil, nil), time.Now()
		w.Update([]*row.Outcome{
			decided(now, time.Hour, "late"), decided(now, 2*time.Second, "soon"), decided(now, time.Second+1, "sooner"),
			decided(now, 2*time.Second, "released"),
		})
		w.Update([]*row.Outcome{decided(now, 0, "released"), decided(now, 3*time.Second, "sooner")})
		w.setSooner("read", now.Add(2500*time.Millisecond))
		w.setSooner("late", now.Add(30*time.Minute)) // its lease has ended elsewhere
		w.setSooner("soon", now.Add(time.Hour))

		if names := dueIn(w, 2*time.Second-1); len(names) != 0 {
			t.Errorf("due are %q", names)
		}
		if names, want := dueIn(w, time.Second+1), []string{"soon", "read", "sooner"}; !slices.Equal(names, want) {
			t.Errorf("due are %q, want %q", names, want)
		}
		w.setSooner("soon", now)
		if names := dueIn(w, 0); len(names) != 0 {
			t.Errorf("%q are due again while they are being swept", names)
		}
		w.swept("soon")
		w.setSooner("soon", now)
		if names := dueIn(w, 0); !slices.Equal(names, []string{"soon"}) {
			t.Errorf("due after the sweep are %q", names)
		}
		if names := dueIn(w, 30*time.Minute-3*time.Second-1); len(names) != 0 {
			t.Errorf("due before half an hour is over are %q", names)
		}
		if names := dueIn(w, 1); !slices.Equal(names, []string{"late"}) {
			t.Errorf("due after half an hour are %q", names)
		}
	})
}

func TestEveryLockOfADecisionHasATimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := New(nil, nil), time.Now()
		w.Update([]*row.Outcome{decided(now, time.Second, "a", "b", "c")})
		w.Update([]*row.Outcome{decided(now, 0, "a", "b")})
		w.Update([]*row.Outcome{decided(now, time.Second, "b")})
		if names := slices.Sorted(slices.Values(dueIn(w, time.Second))); !slices.Equal(names, []string{"b", "c"}) {
			t.Errorf("due are %q", names)
		}
	})
}

// TestAnInstantDuringTheSweepIsNotLost: a sweep that was a moment early sets the timer again, whose instant may come
// before the sweep has returned.
func TestAnInstantDuringTheSweepIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := New(nil, nil), time.Now()
		w.Update([]*row.Outcome{decided(now, time.Second, "a")})
		if names := dueIn(w, time.Second); len(names) != 1 {
			t.Fatalf("due are %q", names)
		}
		w.Update([]*row.Outcome{decided(now, time.Second+time.Millisecond, "a")})
		if names := dueIn(w, time.Second); len(names) != 0 {
			t.Fatalf("%q are due while they are being swept", names)
		}
		w.swept("a")
		if names := dueIn(w, 0); !slices.Equal(names, []string{"a"}) {
			t.Errorf("due are %q", names)
		}
	})
}

// TestALockIsNotDueIfItsInstantMovesBeforeItIsTaken, although the alarm has fired.
func TestALockIsNotDueIfItsInstantMovesBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := New(nil, nil), time.Now()
		w.Update([]*row.Outcome{decided(now, time.Second, "a", "b")})
		time.Sleep(time.Second)
		w.Update([]*row.Outcome{decided(now, time.Minute, "a"), decided(now, 0, "b")})
		if names := dueIn(w, time.Second); len(names) != 0 {
			t.Errorf("due are %q", names)
		}
		if names := dueIn(w, time.Minute); !slices.Equal(names, []string{"a"}) {
			t.Errorf("due after a minute are %q", names)
		}
	})
}

// TestTheAlarmFiresAtEachInstant of locks whose instants are set, moved and removed at random.
func TestTheAlarmFiresAtEachInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const locks, changes = 100, 5000
		w, random := New(nil, nil), rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		instants := make(map[string]time.Time)
		done, swept := make(chan struct{}), 0
		defer close(done)
		go func() {
			for {
				select {
				case <-done:
					return
				case <-w.alarm.C:
				}
				mu.Lock()
				for _, name := range w.takeDue() {
					if late := time.Since(instants[name]); late != 0 {
						t.Errorf("lock %s is due %v after its instant", name, late)
					}
					delete(instants, name)
					w.swept(name)
					swept++
				}
				mu.Unlock()
			}
		}()
		for range changes {
			time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
			name, now, d := fmt.Sprint(random.IntN(locks)), time.Now(), time.Duration(max(random.IntN(3500)-500, 0))*time.Millisecond
			mu.Lock()
			if delete(instants, name); d > 0 {
				instants[name] = now.Add(d)
			}
			w.Update([]*row.Outcome{decided(now, d, name)})
			mu.Unlock()
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(instants) > 0 || swept < changes/100 || len(w.timers) > 0 || len(w.queue) > 0 {
			t.Errorf("%d locks were due, %v not; %d and %d timers are left", swept, instants, len(w.timers), len(w.queue))
		}
	})
}

func TestADatabaseClockThatIsOffMovesNoTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, here := New(nil, nil), time.Now()
		o := decided(here.Add(-time.Hour), 10*time.Second, "a")
		o.Began = here
		w.Update([]*row.Outcome{o})
		if early, then := dueIn(w, 10*time.Second-1), dueIn(w, 1); len(early) != 0 || len(then) != 1 {
			t.Errorf("due are %q in less than 10 s, and then %q", early, then)
		}
	})
}

// TestRunSweepsWhenTheInstantComes also while it waits for a later one, and again if a sweep sets another timer.
func TestRunSweepsWhenTheInstantComes(t *testing.T) {
	t.Parallel()
	db := openDB(t, pgtest.URL(t))
	var w *Timers
	sweeps := make(chan string, 10)
	first := true
	w = New(db, func(_ context.Context, names []string) error {
		name := strings.Join(names, " ")
		if first && name == "renewed" {
			first = false
			w.Update([]*row.Outcome{decided(time.Now(), time.Millisecond, name)})
		}
		sweeps <- name
		if name == "bad" {
			return errors.New("it cannot be swept")
		}
		return nil
	})
	done := make(chan struct{})
	go func() { defer close(done); w.Run() }()
	w.Update([]*row.Outcome{decided(time.Now(), time.Hour, "late")})
	for _, name := range []string{"bad", "renewed"} {
		w.Update([]*row.Outcome{decided(time.Now(), time.Millisecond, name)})
		if got := <-sweeps; got != name {
			t.Errorf("swept is %q", got)
		}
	}
	if got := <-sweeps; got != "renewed" {
		t.Errorf("swept is %q", got)
	}
	db.Stop()
	<-done
	if len(sweeps) != 0 {
		t.Errorf("swept is %q, too", <-sweeps)
	}
}

func TestNoMoreThanSomeLocksAreSweptAtOnce(t *testing.T) {
	t.Parallel()
	db := openDB(t, pgtest.URL(t))
	var running, most, swept atomic.Int32
	release := make(chan struct{})
	w := New(db, func(context.Context, []string) error {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-release
		running.Add(-1)
		swept.Add(1)
		return nil
	})
	const locks = maxSweeps + 50
	for i := range locks {
		w.Update([]*row.Outcome{decided(time.Now(), 1, fmt.Sprint(i))})
	}
	var run sync.WaitGroup
	run.Go(w.Run)
	until(t, "many are swept at once", func() bool { return running.Load() == maxSweeps })
	close(release)
	until(t, "all are swept", func() bool { return swept.Load() == locks })
	if most.Load() != maxSweeps {
		t.Errorf("%d were swept at once", most.Load())
	}
	db.Stop()
	run.Wait()
}
