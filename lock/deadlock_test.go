package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A deadlockScene is locks with leases and waiters, built by calls. A call is written "task mode name", or
// "task mode name,name" for a set, or "task mode+mode name,name" if its locks have two modes; its LeaseID is its
// number. Modes are exclusive, shared, permit with capacity 2, and permit:2/3 for two of three permits. The task is "-" for none, "task@1" in the session 1,
// and "key/task" for that of a key.
type deadlockScene struct {
	*largeSet
	calls []lock.Acquire
}

func newDeadlockScene(t *testing.T, calls ...string) *deadlockScene {
	t.Helper()
	s := &deadlockScene{largeSet: &largeSet{t: t, locks: map[string]lock.Record{}, now: t0}}
	for _, text := range calls {
		s.call(text)
	}
	return s
}

// call acquires, and returns the decision.
func (s *deadlockScene) call(text string) lock.Decision {
	s.t.Helper()
	f := strings.Fields(text)
	n := len(s.calls) + 1
	a := lock.Acquire{
		LeaseID: lock.LeaseID{14: byte(n >> 8), 15: byte(n)}, Holder: fmt.Sprint("h", n), TTL: time.Hour, Wait: lock.MaxWait,
	}
	task, session, inSession := strings.Cut(strings.TrimPrefix(f[0], "-"), "@")
	if inSession {
		a.SessionID, a.TTL = lock.SessionID{15: session[0]}, 0
	}
	if scope, rest, scoped := strings.Cut(task, "/"); scoped {
		task, a.TaskScope = rest, scope
	}
	a.Task = lock.TaskID(task)
	for _, name := range strings.Split(f[2], ",") {
		mode, _, _ := strings.Cut(f[1], "+")
		if _, last, mixed := strings.Cut(f[1], "+"); mixed && len(a.Locks) > 0 {
			mode = last
		}
		kind, number, several := strings.Cut(mode, ":")
		m := lock.Member{Name: name, Mode: lock.ModeOf(kind)}
		if m.Mode == lock.Permit {
			m.Capacity = 2
		}
		if several {
			if _, err := fmt.Sscanf(number, "%d/%d", &m.Permits, &m.Capacity); err != nil {
				s.t.Fatal(err)
			}
		}
		a.Locks = append(a.Locks, m)
	}
	a, err := a.Resolve(lock.Bounds{MinTTL: lock.MinTTL, MaxTTL: lock.MaxTTL, MaxWaiters: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Attachment, a.Replica = lock.Attachment(n), 1
	s.calls = append(s.calls, a)
	s.now = s.now.Add(time.Millisecond)
	return s.do(a)
}

func (s *deadlockScene) records() (all []lock.Record) {
	for _, r := range s.locks {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b lock.Record) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// deadlockScenes gives for each scene the number of the victim, zero for none, and the circle.
var deadlockScenes = map[string]struct {
	calls  []string
	victim int
	cycle  string
}{
	"nothing waits":            {[]string{"t exclusive a", "u exclusive b"}, 0, ""},
	"a queue":                  {[]string{"t exclusive a", "u exclusive a", "v exclusive a"}, 0, ""},
	"two locks":                {[]string{"t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a"}, 4, "h4 a h1, h3 b h2"},
	"two locks, without tasks": {[]string{"- exclusive a", "- exclusive b", "- exclusive b", "- exclusive a"}, 0, ""},
	"one of them has no task":  {[]string{"t exclusive a", "- exclusive b", "t exclusive b", "- exclusive a"}, 0, ""},
	"tasks that begin alike":   {[]string{"t exclusive a", "u exclusive b", "t1 exclusive b", "u1 exclusive a"}, 0, ""},
	"a part waits":             {[]string{"t exclusive a", "u exclusive b", "t.1 exclusive b", "u.2.3 exclusive a"}, 4, "h4 a h1, h3 b h2"},
	"the whole waits, and a part holds": {
		[]string{"t.1 exclusive a", "u.1 exclusive b", "t exclusive b", "u exclusive a"}, 0, "",
	},
	"parts that wait for each other's locks, and go on": {
		[]string{"t exclusive a", "t.1 exclusive b", "t.2 exclusive c", "t.1 exclusive c"}, 0, "",
	},
	"the order of the calls decides, not that of the locks": {
		[]string{"t exclusive a", "u exclusive b", "u exclusive a", "t exclusive b"}, 4, "h4 b h2, h3 a h1",
	},
	"three": {
		[]string{"t exclusive a", "u exclusive b", "v exclusive c", "t exclusive b", "u exclusive c", "v exclusive a"},
		6, "h6 a h1, h4 b h2, h5 c h3",
	},
	"a call that waits for the circle is no victim": {
		[]string{"t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a", "v exclusive a"}, 4, "h4 a h1, h3 b h2",
	},
	"readers of one lock and writers of the other": {
		[]string{"t shared a", "u shared b", "t exclusive b", "u exclusive a"}, 4, "h4 a h1, h3 b h2",
	},
	"behind a writer": {
		[]string{"t shared a", "u exclusive b", "w exclusive a", "t exclusive b", "u shared a"}, 5, "h5 a h3>, h3 a h1, h4 b h2",
	},
	"a permit that any may free": {
		[]string{"t permit a", "v permit a", "u exclusive b", "t exclusive b", "u permit a"}, 0, "",
	},
	"permits of which none can be freed": {
		[]string{"t permit a", "v permit a", "u exclusive b", "t exclusive b", "v exclusive b", "u permit a"},
		6, "h6 a h1, h4 b h3",
	},
	"a set": {
		[]string{"t exclusive a", "u exclusive b", "t exclusive b,c", "u exclusive a,c"}, 4, "h4 a h1, h3 b h2",
	},
	"two of three permits, which another task may free": {
		[]string{"t permit:1/3 a", "v permit:2/3 a", "u exclusive b", "t exclusive b", "u permit:2/3 a"}, 0, "",
	},
	"two of three permits, of which one can be freed": {
		[]string{"t permit:2/3 a", "v permit:1/3 a", "u exclusive b", "t exclusive b", "u permit:2/3 a"},
		5, "h5 a h1, h4 b h3",
	},
	"all permits, of which all but one can be freed": {
		[]string{"t permit:1/3 a", "v permit:2/3 a", "u exclusive b", "t exclusive b", "u permit:3/3 a"},
		5, "h5 a h1, h4 b h3",
	},
	"stuck at one lock of a set, with a free permit at the other one": {
		[]string{
			"s exclusive y", "t permit a", "v permit a", "m exclusive b", "n exclusive c", "m exclusive c", "n exclusive b",
			"s permit+exclusive a,b", "t exclusive y",
		}, 7, "h7 b h4, h6 c h5",
	},
	"behind a set": {[]string{"t exclusive a", "- exclusive a,b", "t exclusive b"}, 3, "h3 b h2>, h2 a h1"},
	"a call that is only ahead is no victim": {
		[]string{"t exclusive a", "u exclusive c", "u exclusive a", "w exclusive c,d", "t exclusive d"}, 5,
		"h5 d h4>, h4 c h2, h3 a h1",
	},
	"sessions": {[]string{"@1 exclusive a", "@2 exclusive b", "@1 exclusive b", "@2 exclusive a"}, 4, "h4 a h1, h3 b h2"},
	"a session that waits, and a task in it that holds": {
		[]string{"t@1 exclusive a", "@2 exclusive b", "@1 exclusive b", "@2 exclusive a"}, 0, "",
	},
	"two API keys that use the same tasks": {
		[]string{"one/t exclusive a", "two/u exclusive b", "two/t exclusive b", "one/u exclusive a"}, 0, "",
	},
	"two API keys": {[]string{"one/t exclusive a", "two/t exclusive b", "one/t.1 exclusive b", "two/t.1 exclusive a"}, 4, "h4 a h1, h3 b h2"},
}

func TestDeadlocks(t *testing.T) {
	t.Parallel()
	for name, c := range deadlockScenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDeadlockScene(t, c.calls...)
			found := lock.FindDeadlocks(s.records(), s.now, 1)
			if c.victim == 0 {
				if len(found) != 0 {
					t.Errorf("found %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Victim != s.calls[c.victim-1].LeaseID {
				t.Fatalf("found %+v, want call %d as the victim", found, c.victim)
			}
			if got := stepsText(found[0].Cycle); got != c.cycle {
				t.Errorf("the circle is %q, want %q", got, c.cycle)
			}
			s.breaks(found[0])
		})
	}
}

// breaks sends the commands that break the deadlock: of each of its calls, one of which is refused, and once more.
func (s *deadlockScene) breaks(d lock.Deadlock) {
	s.t.Helper()
	refused := 0
	for range 2 {
		for _, c := range s.calls {
			cmd := lock.BreakDeadlock{Locks: d.Locks, LeaseID: c.LeaseID, Attachment: c.Attachment}
			out := s.do(cmd)
			if out.Err == nil {
				if !out.Queued {
					s.t.Errorf("of %s it has decided", c.Holder)
				}
				continue
			}
			e := new(lock.Error)
			if refused++; !errors.As(out.Err, &e) || e.Code != lock.ErrDeadlock || c.LeaseID != d.Victim || len(e.Cycle) != len(d.Cycle) {
				s.t.Errorf("%s is refused with %+v", c.Holder, out.Err)
			}
			if last := out.Events[len(out.Events)-1]; last.Kind != lock.Dequeued || last.Reason != "deadlock" {
				s.t.Errorf("the events are %+v", out.Events)
			}
		}
	}
	if refused != 1 {
		s.t.Errorf("%d calls were refused", refused)
	}
	for _, r := range s.locks {
		if slices.ContainsFunc(r.Queue, func(w *lock.Waiter) bool { return w.Lease.ID == d.Victim }) {
			s.t.Errorf("the victim waits in the queue of %s", r.Name)
		}
	}
	if found := lock.FindDeadlocks(s.records(), s.now, 1); len(found) != 0 {
		s.t.Errorf("then there is %+v", found)
	}
}

// TestACircleOfAnyLengthHasOneVictim, the call that closes it.
func TestACircleOfAnyLengthHasOneVictim(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 8; n++ {
		s := newDeadlockScene(t)
		for i := range n {
			s.call(fmt.Sprintf("t%d exclusive l%d", i, i))
		}
		for i := range n {
			s.call(fmt.Sprintf("t%d exclusive l%d", i, (i+1)%n))
			if found := lock.FindDeadlocks(s.records(), s.now, 1); len(found) > 0 != (i == n-1) {
				t.Fatalf("of %d calls %d wait: %+v", n, i+1, found)
			}
		}
		found := lock.FindDeadlocks(s.records(), s.now, 1)
		if len(found) != 1 || len(found[0].Cycle) != n || found[0].Victim != s.calls[2*n-1].LeaseID {
			t.Fatalf("%d: %+v", n, found)
		}
		s.breaks(found[0])
	}
}

// TestACallThatWaitsForItselfIsToldAtOnce, if its task holds what it waits for. A try is only told that the lock is
// held.
func TestACallThatWaitsForItselfIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before []string
		call   string
		want   error
	}{
		"the same task":              {[]string{"t exclusive a"}, "t exclusive a", lock.ErrDeadlock},
		"a part of it":               {[]string{"t exclusive a"}, "t.x.y exclusive a", lock.ErrDeadlock},
		"a sibling":                  {[]string{"t.1 exclusive a"}, "t.2 exclusive a", nil},
		"the whole, of a part":       {[]string{"t.1 exclusive a"}, "t exclusive a", nil},
		"another task":               {[]string{"t exclusive a"}, "u exclusive a", nil},
		"a writer of what it reads":  {[]string{"t shared a"}, "t exclusive a", lock.ErrDeadlock},
		"a reader of what it reads":  {[]string{"t shared a", "u exclusive a"}, "t shared a", lock.ErrDeadlock},
		"one of a set":               {[]string{"t exclusive b"}, "t exclusive a,b,c", lock.ErrDeadlock},
		"a permit, another is free":  {[]string{"t permit a"}, "t permit a", nil},
		"a permit, others may go on": {[]string{"t permit a", "u permit a"}, "t permit a", nil},
		"a permit, all are its own":  {[]string{"t permit a", "t permit a"}, "t permit a", lock.ErrDeadlock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDeadlockScene(t, c.before...)
			d := s.call(c.call)
			if !errors.Is(d.Err, c.want) || c.want == nil && d.Err != nil {
				t.Fatalf("it is answered with %v, want %v", d.Err, c.want)
			}
			if c.want == nil {
				return
			}
			a := s.calls[len(s.calls)-1]
			for _, name := range a.Names() {
				if slices.ContainsFunc(s.locks[name].Queue, func(w *lock.Waiter) bool { return w.Lease.ID == a.LeaseID }) {
					t.Errorf("it waits in the queue of %s", name)
				}
			}
			if a.Wait = 0; !errors.Is(s.do(a).Err, lock.ErrHeld) {
				t.Error("a try is told of a deadlock")
			}
		})
	}
}

// TestOnlyTheVictimsCallIsRemoved: another call has the same lease_id, at another lock of the circle.
func TestOnlyTheVictimsCallIsRemoved(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a")
	d := lock.FindDeadlocks(s.records(), s.now, 1)[0]
	r := s.locks["b"]
	other := *r.Queue[0]
	other.Place, other.Lease.ID, other.Attachment, other.Lease.Task = other.Place+1, d.Victim, 99, ""
	r.Queue = append(slices.Clone(r.Queue), &other)
	s.locks["b"] = r
	if out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment}); !errors.Is(out.Err, lock.ErrDeadlock) {
		t.Fatalf("the victim is answered with %v", out.Err)
	}
	if n := len(s.locks["b"].Queue); n != 2 {
		t.Errorf("%d calls wait for b, want both", n)
	}
}

// TestACallThatGoesAwayIsInNoDeadlock: it is detached, or its replica is dead, or it was granted the lock.
func TestACallThatGoesAwayIsInNoDeadlock(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a")
	d := lock.FindDeadlocks(s.records(), s.now, 1)[0]
	if later := s.now.Add(time.Hour); len(lock.FindDeadlocks(s.records(), later, 1)) != 0 {
		t.Error("calls whose wait is over are in a deadlock")
	}
	if later := s.now.Add(lock.ReplicaTTL); len(lock.FindDeadlocks(s.records(), later, 2)) != 0 {
		t.Error("calls of a dead replica are in a deadlock")
	}
	s.do(lock.Release{Locks: []string{"b"}, LeaseID: s.calls[1].LeaseID}) // grants b to t
	if out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment}); out.Err != nil || !out.Queued {
		t.Errorf("there is no deadlock any more, and it was decided %+v", out)
	}
}

// TestAQueueOfThousandsIsLookedAtQuickly: all of it waits behind one circle.
func TestAQueueOfThousandsIsLookedAtQuickly(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive b", "t exclusive b")
	r := s.locks["a"]
	for i := range 10_000 {
		w := *s.locks["b"].Queue[0]
		w.Lease.ID, w.Lease.Name, w.Lease.Task, w.Place = lock.LeaseID{1, 14: byte(i >> 8), 15: byte(i)}, "a", lock.TaskID(fmt.Sprint("w", i)), int64(i+1)
		r.Queue = append(r.Queue, &w)
	}
	s.now = s.now.Add(time.Millisecond)
	last := *r.Queue[len(r.Queue)-1]
	last.Place, last.Lease.Task, last.JoinedAt, last.Lease.ID = last.Place+1, "u", s.now, lock.LeaseID{2}
	r.Queue = append(r.Queue, &last)
	s.locks["a"] = r
	began := time.Now()
	found := lock.FindDeadlocks(s.records(), s.now, 1)
	t.Log(time.Since(began))
	if len(found) != 1 || found[0].Victim != last.Lease.ID || len(found[0].Cycle) != 2 {
		t.Errorf("found %+v", found)
	}
}

func TestDeadlockInTreeIsFound(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	acquire := func(holder string, wait time.Duration, name string) {
		w.used++
		w.acquire(lock.Acquire{Locks: lock.One(name), LeaseID: id(w.used), Holder: holder, TTL: 30 * time.Second, Wait: wait, Task: lock.TaskID(holder)})
	}
	find := func() []lock.Deadlock {
		var records []lock.Record
		for _, name := range []string{"repo", "repo:x", "repo:x:1", "repo:y", "repo:y:2"} {
			records = append(records, w.record(name))
		}
		return lock.FindDeadlocks(records, w.now, w.self)
	}
	acquire("A", 0, "repo:x:1")
	acquire("B", 0, "repo:y")
	acquire("A", time.Minute/2, "repo:y:2")
	if found := find(); len(found) > 0 {
		t.Errorf("one call waits, and there is %+v", found)
	}
	acquire("B", time.Minute/2, "repo:x")
	found := find()
	if len(found) != 1 || len(found[0].Cycle) != 2 {
		t.Fatalf("found %+v", found)
	}
	if want := []lock.DeadlockStep{
		{Name: "repo:x", Holder: "B", WaitsFor: "A", At: "repo:x:1"}, {Name: "repo:y:2", Holder: "A", WaitsFor: "B", At: "repo:y"},
	}; !slices.Equal(found[0].Cycle, want) {
		t.Errorf("the circle is %+v, want %+v", found[0].Cycle, want)
	}
	b := lock.BreakDeadlock{Locks: found[0].Locks, LeaseID: found[0].Victim, Attachment: found[0].Attachment}
	d := w.applyAll(b)
	const want = `Deadlock: "B" waits for repo:x, and "A" holds repo:x:1, below it; "A" waits for repo:y:2, and "B" holds repo:y, above it. `
	if e := (*lock.Error)(nil); !errors.As(d.Err, &e) || e.Code != lock.ErrDeadlock || !strings.HasPrefix(e.Detail, want) {
		t.Errorf("it was broken with %v", d.Err)
	}
}
