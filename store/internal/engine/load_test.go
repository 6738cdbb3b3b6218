package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestALockThatKeepsChangingIsLocked after a miss, so no call misses endlessly.
func TestALockThatKeepsChangingIsLocked(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	r.releases(r.acquires("a"))
	r.afterLook = func() { s.exec("update paddock.records set holder = holder where name = 'a'") }
	s.exec("update paddock.records set holder = holder where name = 'a'")
	r.reset()
	l := r.acquires("a")
	r.used(0, 1, 2)
	r.renews(l)
	r.used(0, 0, 1)
}

// TestManyTokensInOneDecision: as many as one may have; the next decision goes on.
func TestManyTokensInOneDecision(t *testing.T) {
	t.Parallel()
	r := newReplica(t, pgtest.URL(t), 1)
	const permits = 300
	first := r.acquires("a")
	var commands []lock.Command
	for range permits {
		a := wants("a")
		a.Locks[0].Mode, a.Locks[0].Capacity, a.Wait, a.Replica, a.Attachment = lock.Permit, permits, lock.MaxWait, r.self, 1
		commands = append(commands, a)
	}
	outcomes, errs := r.DoAll(t.Context(), commands)
	for i, out := range outcomes {
		if errs[i] != nil || !out.Queued || out.Place == 0 {
			t.Fatalf("call %d: %+v, %v", i, out, errs[i])
		}
	}
	out := r.must(lock.Release{Locks: []string{"a"}, LeaseID: first.ID})
	if n := len(out.Promoted); n != lock.MaxTokens-1 || out.Due.After(out.Now) {
		t.Fatalf("%d were granted the lock, and the next decision is due at %v", n, out.Due)
	}
	if out = r.must(lock.Sweep{Locks: []string{"a"}}); len(out.Locks[0].Leases) != permits {
		t.Fatalf("%d have the lock", len(out.Locks[0].Leases))
	}
	last := first.Token
	for _, l := range out.Locks[0].Leases {
		if l.Token <= last {
			t.Fatalf("token %d after %d", l.Token, last)
		}
		last = l.Token
	}
	var readers []lock.Command
	for range 100 {
		a := wants("b")
		a.Locks[0].Mode = lock.Shared
		readers = append(readers, a)
	}
	outcomes, errs = r.DoAll(t.Context(), readers)
	for i, out := range outcomes {
		if errs[i] != nil || out.Leases[0].Token != outcomes[0].Leases[0].Token {
			t.Errorf("reader %d: %+v, %v", i, out.Leases[0], errs[i])
		}
	}
}

// A burst has many events.
type burst struct {
	name   string
	events int
}

func (b burst) Names() []string                       { return []string{b.name} }
func (b burst) Traits() lock.Traits                   { return lock.Traits{} }
func (b burst) In(*lock.Policy) (lock.Command, error) { return b, nil }

func (b burst) Apply(v lock.View) lock.Decision {
	r := v.Locks[0]
	d := lock.Decision{Now: v.Now, Changed: true}
	for range b.events {
		r.Revision++
		d.Events = append(d.Events, lock.Event{Name: b.name, At: v.Now, Revision: r.Revision, Kind: lock.Queued})
	}
	r.ChangedAt = v.Now
	d.Locks = []lock.Record{r}
	return d
}

// TestManyEventsAreInSeveralRows: each row has room for a number of them. What does not fit is decided after that.
func TestManyEventsAreInSeveralRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		locks, bursts, events int
		first                 int // events of the first command
	}{
		"of many locks":                 {locks: 10, bursts: 1, events: 900},
		"of one lock":                   {locks: 1, bursts: 10, events: 900},
		"of a few":                      {locks: 3, bursts: 5, events: 900},
		"a full row each":               {locks: 2, bursts: 2, events: row.EventsPerBatch},
		"one command with a full row":   {locks: 1, bursts: 1, events: row.EventsPerBatch},
		"a small one before a full row": {locks: 1, bursts: 3, events: row.EventsPerBatch, first: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			r, s := newReplica(t, url, 1), connect(t, url)
			var commands []lock.Command
			want := int64(c.first)
			if c.first > 0 {
				commands = append(commands, burst{"n:0", c.first})
			}
			for i := range c.locks * c.bursts {
				commands = append(commands, burst{fmt.Sprint("n:", i%c.locks), c.events})
				want += int64(c.events)
			}
			outcomes, errs := r.DoAll(t.Context(), commands)
			revisions := make(map[string]int64)
			for i, cmd := range commands {
				b := cmd.(burst)
				revisions[b.name] += int64(b.events)
				if errs[i] != nil {
					t.Fatalf("command %d: %v", i, errs[i])
				}
				if got := outcomes[i].Locks[0].Revision; got != revisions[b.name] {
					t.Fatalf("command %d left revision %d, want %d", i, got, revisions[b.name])
				}
			}
			if n := s.number("select count(*) from " + events); n != want {
				t.Errorf("%d events were written, want %d", n, want)
			}
			for lock, n := range revisions {
				got := s.number(`select count(*) from (select revision, row_number() over (order by id) as nth from `+events+` where name = $1) e
					where revision = nth`, lock)
				if got != n {
					t.Errorf("%d of the %d events of %s are in order", got, n, lock)
				}
			}
		})
	}
}

// TestACommandWithTooManyEventsIsRefused, and the others are not.
func TestACommandWithTooManyEventsIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := newReplica(t, url, 1)
	_, errs := r.DoAll(t.Context(), []lock.Command{wants("a"), burst{"a", row.EventsPerBatch + 1}, burst{"a", 3}, burst{"b", row.EventsPerBatch + 1}})
	for i, want := range []error{nil, lock.ErrInternal, nil, lock.ErrInternal} {
		if !errors.Is(errs[i], want) {
			t.Errorf("command %d: %v, want %v", i, errs[i], want)
		}
	}
	if n := connect(t, url).number("select count(*) from " + events); n != 4 {
		t.Errorf("%d events were written", n)
	}
}

// TestAQueueOfTwoReplicasIsDecidedOnTheCache as long as both are known to be alive.
func TestAQueueOfTwoReplicasIsDecidedOnTheCache(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, other, s := newReplica(t, url, 1), newReplica(t, url, 2), connect(t, url)
	s.exec("insert into paddock.replicas (id, alive_until, waiting, watching) values (2, clock_timestamp() + interval '1 hour', 1, false)")
	held := r.acquires("a")
	theirs := other.joins("a", nil)
	r.renews(held) // reads the queue
	r.reset()
	mine := r.joins("a", nil)
	r.renews(held)
	out := r.must(lock.Release{Locks: []string{"a"}, LeaseID: held.ID})
	if len(out.Promoted) != 1 || out.Promoted[0].Lease.ID != theirs.LeaseID || !out.Promoted[0].GrantedUnclaimed {
		t.Errorf("promoted were %+v", out.Promoted)
	}
	r.used(0, 0, 3)
	claimed := other.must(lock.Claim{Locks: []string{"a"}, LeaseID: theirs.LeaseID, Attachment: theirs.Attachment})
	out = other.must(lock.Release{Locks: []string{"a"}, LeaseID: claimed.Leases[0].ID})
	if len(out.Promoted) != 1 || out.Promoted[0].Lease.ID != mine.LeaseID {
		t.Errorf("promoted were %+v", out.Promoted)
	}
}

// TestAClaimIsNotDecidedOnACacheThatLacksItsGrant: the lock has changed, so what else is in the batch is decided on what
// is there, too, and no swap misses.
func TestAClaimIsNotDecidedOnACacheThatLacksItsGrant(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, other := newReplica(t, url, 1), newReplica(t, url, 2)
	held := r.acquires("a")
	theirs := other.joins("a", nil)
	r.releases(held)
	other.reset()
	next := wants("a")
	next.Wait, next.Replica, next.Attachment = lock.MaxWait, 2, theirs.Attachment+1
	claim := lock.Claim{Locks: []string{"a"}, LeaseID: theirs.LeaseID, Attachment: theirs.Attachment}
	out, errs := other.DoAll(t.Context(), []lock.Command{claim, next})
	if err := errors.Join(errs...); err != nil || out[0].Leases[0].ID != theirs.LeaseID || !out[1].Queued {
		t.Errorf("%v, %+v", err, out)
	}
	other.used(1, 0, 1)
}

// TestAReplicaThatMayBeDeadIsReadAgain: its heartbeats are not in the cache.
func TestAReplicaThatMayBeDeadIsReadAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		waiter lock.Waiter
		want   bool
	}{
		"of this replica":        {lock.Waiter{Replica: 1}, false},
		"without a call":         {lock.Waiter{}, false},
		"alive for long":         {lock.Waiter{Replica: 2, AliveUntil: now.Add(time.Minute)}, false},
		"alive, but not later":   {lock.Waiter{Replica: 2, AliveUntil: now.Add(row.MaxLag)}, true},
		"alive for long enough":  {lock.Waiter{Replica: 2, AliveUntil: now.Add(row.MaxLag + 1)}, false},
		"not heard of for a day": {lock.Waiter{Replica: 2, AliveUntil: now.Add(-24 * time.Hour)}, true},
	} {
		if got := heartbeatMayExpire([]*lock.Waiter{{Replica: 1}, &c.waiter}, now, 1); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	url := pgtest.URL(t)
	r, other, s := newReplica(t, url, 1), newReplica(t, url, 2), connect(t, url)
	held := r.acquires("a")
	theirs := other.joins("a", nil)
	r.renews(held)
	s.exec("insert into paddock.replicas (id, alive_until, waiting, watching) values (2, clock_timestamp() + interval '1 hour', 1, false)")
	s.until("select bool_and(acquired_at + interval '2 s' < clock_timestamp()) from paddock.parts")
	out := r.must(lock.Release{Locks: []string{"a"}, LeaseID: held.ID})
	if len(out.Promoted) != 1 || out.Promoted[0].Lease.ID != theirs.LeaseID {
		t.Errorf("promoted were %+v, though the waiter's replica is alive", out.Promoted)
	}
}

// TestTheCacheIsWhatIsInTheTables compares each lock that nothing has changed since with what is read, after calls of
// all kinds at two replicas.
func TestTheCacheIsWhatIsInTheTables(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*replica{newReplica(t, url, 1), newReplica(t, url, 2)}
	var clients []*client
	for i := range 6 {
		clients = append(clients, &client{replica: replicas[i%2], random: rand.New(rand.NewPCG(3, uint64(i)))})
	}
	same := 0
	for range 8 {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(c.wander)
		}
		all.Wait()
		for _, r := range replicas {
			same += r.compareCache()
		}
	}
	if same < 20 {
		t.Errorf("only %d locks in the caches were current", same)
	}
}

// compareCache returns how many locks in the cache are of the present version.
func (r *replica) compareCache() (same int) {
	r.Helper()
	conn, err := r.db.Deciding.Acquire(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Release()
	for _, h := range []half{r.cache().old, r.cache().young} {
		for name, cached := range h.rows {
			v, err := row.Look{Names: []string{name}, Create: []string{name}}.Run(r.Context(), conn.Conn())
			if err != nil {
				r.Fatal(err)
			}
			is := v.Rows[name]
			if is.Xmin != cached.Xmin {
				continue
			}
			same++
			if a, b := comparable(*cached), comparable(*is); !reflect.DeepEqual(a, b) {
				r.Errorf("in the cache  %s\nin the tables %s", show(a), show(b))
			}
		}
	}
	return same
}

// show returns the record as text, with its waiters.
func show(l lock.Record) string {
	var queue []lock.Waiter
	for _, w := range l.Queue {
		queue = append(queue, *w)
	}
	l.Queue = nil
	return fmt.Sprintf("%+v %+v", l, queue)
}

// comparable returns what must be equal: not until when replicas are alive, and not the attachment of the lease that a
// waiter asks for, which a grant replaces.
func comparable(r row.Row) (l lock.Record) {
	l = r.Record
	if l.Queue = nil; len(l.Leases) == 0 {
		l.Leases = nil
	}
	l.Leases = slices.Clone(l.Leases)
	slices.SortFunc(l.Leases, func(a, b lock.Lease) int { return a.Slot - b.Slot })
	for _, w := range r.Record.Queue {
		c := *w
		c.AliveUntil, c.Lease.Attachment = time.Time{}, 0
		l.Queue = append(l.Queue, &c)
	}
	return l
}

// A client makes calls of all kinds at random.
type client struct {
	*replica
	random *rand.Rand
	made   []lock.Acquire
}

func (c *client) wander() {
	for range 20 {
		var cmd lock.Command
		last := wants("n:0")
		if len(c.made) > 0 {
			last = c.made[c.random.IntN(len(c.made))]
		}
		switch c.random.IntN(8) {
		case 0, 1:
			a := wants(fmt.Sprint("n:", c.random.IntN(4)))
			if a.Locks[0].Mode = lock.Mode(1 + c.random.IntN(3)); a.Locks[0].Mode == lock.Permit {
				a.Locks[0].Capacity = 2
			}
			a.TTL = time.Duration(200+c.random.IntN(2000)) * time.Millisecond
			a.Grace, a.MaxHold = time.Duration(c.random.IntN(3))*time.Second, time.Duration(c.random.IntN(2))*time.Hour
			a.Metadata = fmt.Appendf(nil, `{ "é<": "%0*d"}`, 1+c.random.IntN(9), 7)
			if c.random.IntN(2) == 0 {
				a.Wait, a.Replica, a.Attachment = time.Second, c.self, lock.Attachment(1+uuid.New().ID())
				a.KeepPlace = c.random.IntN(2) == 0
			}
			c.made = append(c.made, a)
			cmd = a
		case 2:
			cmd = lock.Renew{Locks: last.Names(), LeaseID: last.LeaseID, Metadata: []byte(`{}`)}
		case 3:
			cmd = lock.Release{Locks: last.Names(), LeaseID: last.LeaseID}
		case 4:
			cmd = lock.Leave{Locks: last.Names(), LeaseID: last.LeaseID, Attachment: last.Attachment, KeepPlace: last.KeepPlace, Disconnected: c.random.IntN(2) == 0}
		case 5:
			cmd = lock.Claim{Locks: last.Names(), LeaseID: last.LeaseID, Attachment: last.Attachment}
		case 6:
			cmd = last
		default:
			cmd = lock.Sweep{Locks: []string{fmt.Sprint("n:", c.random.IntN(4))}}
		}
		_, err := c.Do(c.Context(), cmd)
		if e := new(lock.Error); err != nil && (!errors.As(err, &e) || e.Code == lock.ErrInternal || e.Code == lock.ErrUnavailable) {
			c.Errorf("%+v: %v", cmd, err)
		}
	}
}
