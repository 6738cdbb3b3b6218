package lock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestClosing(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a release closes the lock for a time since the grant": `
			acquire 1 holder=first; after 4s
			release 1 closed=1m -> released closed=56s by=first state=free changes=56s
			acquire 2 -> !already_done holder=first retry=56s done=0s; after 56s-1ns
			acquire 2 -> !already_done retry=1ns; after 1ns
			acquire 2 -> granted token=2 closed=never`,
		"the end of a period of the wall clock closes it": `
			acquire 1; release 1 per=hour -> closed=55m55s
			acquire 2 -> !already_done retry=55m55s`,
		"the later of the two instants counts": `
			acquire 1; release 1 per=minute closed=10s -> closed=55s; after 55s
			acquire 2; release 2 per=minute closed=90s -> closed=90s`,
		"work that goes on into the next period was that of the period before": `
			acquire 1 ttl=2m; after 56s; release 1 per=minute -> released closed=never
			acquire 2 -> granted`,
		"work that goes on over midnight was that of the day before": `
			acquire 1 ttl=24h; after 20h55m56s; release 1 per=day -> released closed=never
			acquire 2 ttl=24h; after 1s; release 2 per=day -> closed=23h59m58s`,
		"work that ends just before midnight closes the lock until then": `
			acquire 1 ttl=24h; after 20h55m55s-1ns
			release 1 per=day -> closed=1ns; acquire 2 -> !already_done retry=1ns; after 1ns
			acquire 2 -> granted`,
		"a grant at midnight is one of the new day": `
			after 20h55m55s; acquire 1; release 1 per=day -> closed=24h; after 24h-1ns
			acquire 2 -> !already_done; after 1ns; acquire 2`,
		"work that takes longer than the time closes nothing": `acquire 1 ttl=2m; after 1m; release 1 closed=1m -> closed=never; acquire 2`,
		"a lease that ends in another way closes nothing": `
			acquire 1; after 10s; release 1 closed=1h -> !lease_lost expired closed=never
			acquire 2; revoke 2; release 2 closed=1h -> !lease_lost(maintenance) closed=never; acquire 3`,
		"in the grace it is closed, too": `acquire 1 grace=5s; after 12s; release 1 closed=1h -> released closed=1h-12s`,
		"a repeated release closes nothing anew": `
			acquire 1; release 1 closed=10s; after 5s
			release 1 closed=1h -> nothing closed=5s
			acquire 2 -> !already_done; after 5s
			release 1 closed=1h -> nothing closed=never`,
		"only exclusive leases close, and no place does": `
			acquire 1 shared; release 1 closed=1h -> !invalid_request nothing
			release 1; acquire 2; wait 3
			release 3 closed=1h -> !invalid_request [2 | 3]`,
		"a waiter waits until the lock opens": `
			acquire 1; wait 2 for=maxwait
			release 1 closed=20s -> released due=20s [| 2]; after 20s
			sweep -> granted wakes=2 [2 |]`,
		"a wait that ends before is refused with what was done": `
			acquire 1 holder=first; wait 2; release 1 closed=1h; after 20s
			leave 2 -> !already_done holder=first retry=1h-20s`,
		"a waiter for work that needs to be done only once is told at once": `
			acquire 1 holder=first; wait 2 once; wait 3; wait 4 once
			release 1 closed=1h -> released dequeued(already done) dequeued(already done) ousts=2,4 [| 3]
			claim 2 -> !already_done holder=first
			leave 4 -> !already_done
			acquire 5 once for=5s -> !already_done nothing [| 3]`,
		"it is told even if the lock has opened meanwhile": `
			acquire 1; wait 2 once; release 1 closed=10s; after 10s
			claim 2 -> !already_done retry=1ns`,
		"a call that comes back for such work is told, too": `
			acquire 1; wait 2; release 1 closed=1h
			acquire 2 once for=5s -> !already_done dequeued [|]`,
		"it is granted the lock if the holder crashes": `acquire 1; wait 2 once; after 10s; sweep -> expired granted wakes=2 [2 |]`,
		"and if its work was not done":                 `acquire 1; wait 2 once; release 1 -> released granted wakes=2`,
		"a detached waiter for such work is removed":   `acquire 1; wait 2 once; cut 2; release 1 closed=1h -> released dequeued(already done) [|]`,
		"an operator opens it by the token of the lease that closed it": `
			acquire 1; wait 2 for=maxwait; release 1 closed=1h
			revoke 1 -> opened#1(maintenance) granted#2 closed=never wakes=2 [2 |]`,
		"an operator opens nothing by another token": `
			acquire 1; release 1; acquire 2; release 2 closed=1h
			revoke 1 -> !token_mismatch closed=1h
			revoke 2 slot=1 -> !token_mismatch closed=1h
			revoke 2 -> opened#2; revoke 2 -> quiet
			acquire 3; revoke 2 -> !token_mismatch`,
		"a lease of a session closes the lock": `open 1; acquire 2 in=1; release 2 closed=1h -> closed=1h`,
		"the closing is forgotten with the next grant": `
			acquire 1; release 1 closed=5s; after 5s
			acquire 2; release 2 -> closed=never; acquire 3`,
	})
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"nothing is granted until the end, and leases live on": `
			acquire 1; freeze jobs: for=1m
			renew 1; acquire 1 -> replayed=true
			acquire 2 -> !lock_frozen(maintenance) retry=1m
			release 1; acquire 2 -> !lock_frozen(maintenance); after 1m
			acquire 2 -> granted`,
		"a freeze without an end lasts until it is ended": `
			freeze jobs:nightly; acquire 1 -> !lock_frozen(maintenance) retry=10s; after 1h
			acquire 1 -> !lock_frozen(maintenance)
			thaw; acquire 1`,
		"another scope is not frozen": `freeze jobs; acquire 1; freeze jobs:night; renew 1; release 1; acquire 2`,
		"a waiter waits, in its place, and is served at the end": `
			acquire 1; freeze jobs: for=30s; wait 2 for=maxwait -> queued
			wait 3 for=maxwait; release 1 -> released due=30s [| 2 3]; after 30s
			sweep -> granted wakes=2 [2 | 3]`,
		"a waiter is served once the freeze is ended": `acquire 1; wait 2; freeze jobs:; release 1 -> released [| 2]; thaw; sweep -> granted wakes=2`,
		"a wait that ends meanwhile is refused as frozen": `
			freeze jobs: for=1m; wait 1; after 20s; leave 1 -> !lock_frozen(maintenance) retry=40s`,
		"what is done is done": `acquire 1; release 1 closed=1h; freeze jobs:; acquire 2 once for=1s -> !already_done`,
	})
}

// TestFreezesOfATree: a lease covers what is below it, so it is frozen by a freeze of that.
func TestFreezesOfATree(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		scope  lock.Scope
		asked  lock.Member
		frozen bool
	}{
		"the lock itself":                   {"repo:src", exclusiveLock("repo:src"), true},
		"below a frozen lock":               {"repo:src", sharedLock("repo:src:a"), true},
		"above a frozen lock":               {"repo:src:a", sharedLock("repo"), true},
		"above a frozen prefix":             {"repo:src:", exclusiveLock("repo:src"), true},
		"beside a frozen lock":              {"repo:src:a", exclusiveLock("repo:src:b"), false},
		"beside a frozen prefix":            {"repo:src:", exclusiveLock("repo:docs"), false},
		"outside of the tree":               {"repo:", exclusiveLock("repository"), false},
		"above, but not in a tree":          {"other:a", exclusiveLock("other"), false},
		"a prefix of a prefix, in the tree": {"repo:", sharedLock("repo:src:a"), true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			w.freezes = map[lock.Scope]lock.Freeze{c.scope: {Scope: c.scope, Reason: "maintenance"}}
			d := w.acquireIn("caller", 0, c.asked)
			if errors.Is(d.Err, lock.ErrFrozen) != c.frozen || !c.frozen && d.Err != nil {
				t.Errorf("decided with %v", d.Err)
			}
			l := lock.Lock{Name: c.asked.Name, AsOf: t0}
			if l.AddPolicy(w.policy()); (l.Frozen != nil) != c.frozen || c.frozen && l.Frozen.Scope != c.scope {
				t.Errorf("the lock shows %+v", l.Frozen)
			}
		})
	}
}

// TestClosedLocksOfATree: a closed lock closes those below, and not those above.
func TestClosedLocksOfATree(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("worker", 0, exclusiveLock("repo:src"))
	once := w.acquireOnce("second", "repo:src")
	below := w.acquireOnce("below", "repo:src:a")
	if d := w.do(lock.Release{Locks: []string{"repo:src"}, LeaseID: w.ids["worker"], Closed: lock.Closing{For: time.Hour}}); d.Err != nil || len(d.Ousted) != 1 {
		t.Fatalf("released with %v, ousted %v", d.Err, d.Ousted)
	}
	if w.waits(once) || !w.waits(below) {
		t.Errorf("the waiter for the closed lock waits: %t; that for the lock below: %t", w.waits(once), w.waits(below))
	}
	w.sleep(time.Minute) // the waiter leaves
	for asked, code := range map[string]lock.Code{"repo:src": lock.ErrAlreadyDone, "repo:src:a": lock.ErrHeld, "repo:docs": "", "repo": ""} {
		d := w.acquireIn(asked, 0, exclusiveLock(asked))
		e := new(lock.Error)
		if errors.As(d.Err, &e); e.Code != code || code != "" && (len(e.Blocked) != 1 || e.Blocked[0].Name != "repo:src") {
			t.Errorf("%s: %+v, want %q", asked, d.Err, code)
		}
		if d.Err == nil {
			w.releaseIn(asked, asked)
		}
	}
	w.sleep(time.Hour)
	if d := w.acquireIn("next", 0, exclusiveLock("repo:src:b")); d.Err != nil {
		t.Errorf("after the closing: %v", d.Err)
	}
}

// acquireOnce waits for the lock, for work that needs to be done once.
func (w *treeWorld) acquireOnce(holder, name string) lock.LeaseID {
	w.t.Helper()
	w.used++
	if _, d := w.acquire(lock.Acquire{
		LeaseID: id(w.used), Holder: holder, TTL: 10 * time.Second, Wait: time.Minute / 2, Once: true, Locks: lock.One(name),
	}); !d.Queued {
		w.t.Fatalf("%s does not wait: %v", holder, d.Err)
	}
	return id(w.used)
}

// waits reports whether the call has a place in any queue.
func (w *treeWorld) waits(id lock.LeaseID) bool {
	for name := range w.locks {
		for _, o := range w.record(name).Queue {
			if o.Lease.ID == id {
				return true
			}
		}
	}
	return false
}

// TestASetClosesEachOfItsLocks, and a set that needs one of them is refused with it.
func TestASetClosesEachOfItsLocks(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("worker", 0, exclusiveLock("a"), exclusiveLock("b"))
	if d := w.do(lock.Release{Locks: []string{"a", "b"}, LeaseID: w.ids["worker"], Closed: lock.Closing{For: time.Hour}}); d.Err != nil {
		t.Fatal(d.Err)
	}
	for _, set := range [][]lock.Member{{exclusiveLock("a")}, {exclusiveLock("b")}, {exclusiveLock("b"), exclusiveLock("c")}} {
		if d := w.acquireIn("other", 0, set...); !errors.Is(d.Err, lock.ErrAlreadyDone) {
			t.Errorf("%v: %v", set, d.Err)
		}
	}
	if d := w.do(lock.Revoke{Name: "b", Token: w.record("b").Token, Reason: "again"}); d.Err != nil {
		t.Fatal(d.Err)
	}
	if d := w.acquireIn("again", 0, exclusiveLock("b"), exclusiveLock("c")); d.Err != nil {
		t.Errorf("an opened lock: %v", d.Err)
	}
	if d := w.acquireIn("not again", 0, exclusiveLock("a")); !errors.Is(d.Err, lock.ErrAlreadyDone) {
		t.Errorf("the other lock of the set: %v", d.Err)
	}
}

// TestManyWaitersAreToldThatTheWorkIsDone: more than one decision removes. The next ones are due at once.
func TestManyWaitersAreToldThatTheWorkIsDone(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.must(acquire(1))
	const n = 1500
	for i := range n {
		w := &lock.Waiter{Place: int64(i + 2), Once: true, JoinedAt: t0, Lease: lock.Lease{ID: lock.LeaseID{1, byte(i >> 8), byte(i)}, Name: name, Mode: lock.Exclusive, Holder: "w", TTL: time.Second}}
		w.Attachment, w.Replica, w.WaitUntil, w.AliveUntil, w.KeptUntil = lock.Attachment(i+1), 1, t0.Add(time.Minute), t0.Add(time.Minute), t0.Add(time.Hour)
		m.record.Queue = append(m.record.Queue, w)
	}
	v := lock.View{Now: t0, Self: 1, Locks: []lock.Record{m.record}, Tokens: func() lock.Token { t.Fatal("granted"); return 0 }}
	d := lock.Release{Locks: []string{name}, LeaseID: id(1), Closed: lock.Closing{For: time.Hour}}.Apply(v)
	told := len(d.Ousted)
	for steps := 0; len(d.Locks[0].Queue) > 0 && steps < 10; steps++ {
		if d.Due.After(d.Now) {
			t.Fatalf("%d waiters are left, and the next sweep is due at %v", len(d.Locks[0].Queue), d.Due)
		}
		v.Locks = d.Locks
		d = sweep.Apply(v)
		told += len(d.Ousted)
	}
	if told != n {
		t.Errorf("%d of %d waiters were told", told, n)
	}
}

func TestPeriodsEnd(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		closing     lock.Closing
		begin, want string
	}{
		"a minute":                         {lock.Closing{Period: lock.Minute}, "2026-03-04T05:06:07.5Z", "2026-03-04T05:07:00Z"},
		"the first instant of a minute":    {lock.Closing{Period: lock.Minute}, "2026-03-04T05:06:00Z", "2026-03-04T05:07:00Z"},
		"an hour":                          {lock.Closing{Period: lock.Hour}, "2026-03-04T05:06:07Z", "2026-03-04T06:00:00Z"},
		"an hour of another offset":        {lock.Closing{Period: lock.Hour, Zone: "Asia/Kolkata"}, "2026-03-04T05:06:07Z", "2026-03-04T05:30:00Z"},
		"a day":                            {lock.Closing{Period: lock.Day}, "2026-03-04T05:06:07Z", "2026-03-05T00:00:00Z"},
		"a day in a time zone":             {lock.Closing{Period: lock.Day, Zone: "Europe/Berlin"}, "2026-01-01T22:59:59Z", "2026-01-01T23:00:00Z"},
		"a day of 23 hours":                {lock.Closing{Period: lock.Day, Zone: "Europe/Berlin"}, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		"a day of 25 hours":                {lock.Closing{Period: lock.Day, Zone: "Europe/Berlin"}, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		"a day that begins at one":         {lock.Closing{Period: lock.Day, Zone: "America/Sao_Paulo"}, "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		"the hour before such a day":       {lock.Closing{Period: lock.Day, Zone: "America/Sao_Paulo"}, "2018-11-04T02:30:00Z", "2018-11-04T03:00:00Z"},
		"a day whose midnight comes twice": {lock.Closing{Period: lock.Day, Zone: "America/Sao_Paulo"}, "2018-02-18T02:30:00Z", "2018-02-18T03:00:00Z"},
		"a week that begins on Monday":     {lock.Closing{Period: lock.Week}, "2026-03-04T05:06:07Z", "2026-03-09T00:00:00Z"},
		"a Sunday":                         {lock.Closing{Period: lock.Week}, "2026-03-08T23:59:59Z", "2026-03-09T00:00:00Z"},
		"a Monday":                         {lock.Closing{Period: lock.Week}, "2026-03-09T00:00:00Z", "2026-03-16T00:00:00Z"},
		"a month":                          {lock.Closing{Period: lock.Month}, "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"},
		"the last month of a year":         {lock.Closing{Period: lock.Month, Zone: "Europe/Berlin"}, "2026-12-31T22:00:00Z", "2026-12-31T23:00:00Z"},
		"a longer time":                    {lock.Closing{Period: lock.Minute, For: time.Hour}, "2026-03-04T05:06:07Z", "2026-03-04T06:06:07Z"},

		"the first instant of a day":            {lock.Closing{Period: lock.Day, Zone: "Europe/Berlin"}, "2026-01-01T23:00:00Z", "2026-01-02T23:00:00Z"},
		"the last instant of a day":             {lock.Closing{Period: lock.Day, Zone: "Europe/Berlin"}, "2026-01-01T22:59:59.999999999Z", "2026-01-01T23:00:00Z"},
		"the hour that is skipped":              {lock.Closing{Period: lock.Hour, Zone: "Europe/Berlin"}, "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		"the hour that comes twice, first":      {lock.Closing{Period: lock.Hour, Zone: "Europe/Berlin"}, "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"},
		"the hour that comes twice, again":      {lock.Closing{Period: lock.Hour, Zone: "Europe/Berlin"}, "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"},
		"a week of 167 hours":                   {lock.Closing{Period: lock.Week, Zone: "Europe/Berlin"}, "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		"a week of 169 hours":                   {lock.Closing{Period: lock.Week, Zone: "Europe/Berlin"}, "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		"a month that is an hour shorter":       {lock.Closing{Period: lock.Month, Zone: "Europe/Berlin"}, "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		"a day of 23 and a half hours":          {lock.Closing{Period: lock.Day, Zone: "Australia/Lord_Howe"}, "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"},
		"a day of 24 and a half hours":          {lock.Closing{Period: lock.Day, Zone: "Australia/Lord_Howe"}, "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
		"half an hour that is skipped":          {lock.Closing{Period: lock.Hour, Zone: "Australia/Lord_Howe"}, "2026-10-03T15:15:00Z", "2026-10-03T15:30:00Z"},
		"the hour that begins in the middle":    {lock.Closing{Period: lock.Hour, Zone: "Australia/Lord_Howe"}, "2026-10-03T15:45:00Z", "2026-10-03T16:00:00Z"},
		"half an hour that comes twice":         {lock.Closing{Period: lock.Hour, Zone: "Australia/Lord_Howe"}, "2026-04-04T14:45:00Z", "2026-04-04T15:00:00Z"},
		"the day before one that did not exist": {lock.Closing{Period: lock.Day, Zone: "Pacific/Apia"}, "2011-12-30T09:59:59Z", "2011-12-30T10:00:00Z"},
		"the day after one that did not exist":  {lock.Closing{Period: lock.Day, Zone: "Pacific/Apia"}, "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		"a week with a day that did not exist":  {lock.Closing{Period: lock.Week, Zone: "Pacific/Apia"}, "2011-12-29T12:00:00Z", "2012-01-01T10:00:00Z"},
		"a month of 28 days":                    {lock.Closing{Period: lock.Month}, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		"a month of 29 days":                    {lock.Closing{Period: lock.Month}, "2028-02-28T12:00:00Z", "2028-03-01T00:00:00Z"},
		"the leap day":                          {lock.Closing{Period: lock.Day}, "2028-02-28T12:00:00Z", "2028-02-29T00:00:00Z"},
		"a century without a leap day":          {lock.Closing{Period: lock.Day}, "2100-02-28T12:00:00Z", "2100-03-01T00:00:00Z"},
		"a month of 30 days, on its last":       {lock.Closing{Period: lock.Month}, "2026-04-30T12:00:00Z", "2026-05-01T00:00:00Z"},
		"a month of 31 days, on its last":       {lock.Closing{Period: lock.Month}, "2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"},
		"a week across a year":                  {lock.Closing{Period: lock.Week}, "2026-12-31T12:00:00Z", "2027-01-04T00:00:00Z"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			begin, err := time.Parse(time.RFC3339, c.begin)
			if err != nil {
				t.Fatal(err)
			}
			r, err := (lock.Release{Locks: []string{"a"}, LeaseID: id(1), Closed: c.closing}).Resolve()
			if err != nil {
				t.Fatal(err)
			}
			held := lock.Lease{ID: id(1), Name: "a", Mode: lock.Exclusive, TTL: time.Hour, AcquiredAt: begin, ExpiresAt: begin.Add(time.Hour)}
			d := r.Apply(lock.View{Now: begin, Locks: []lock.Record{{Name: "a", Leases: []lock.Lease{held}}}})
			if d.Err != nil || d.Locks[0].Closed == nil || d.Locks[0].Closed.Until.Format(time.RFC3339) != c.want {
				t.Errorf("closed %+v, %v; want until %s", d.Locks[0].Closed, d.Err, c.want)
			}
			if d.Events[0].Until != d.Locks[0].Closed.Until {
				t.Errorf("the event says %v", d.Events[0].Until)
			}
		})
	}
}

func TestClosingBounds(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		closing lock.Closing
		field   string
		says    string
	}{
		"nothing":             {},
		"the longest":         {closing: lock.Closing{For: lock.MaxClosed}},
		"longer":              {lock.Closing{For: lock.MaxClosed + time.Millisecond}, "closed_ms", "give 0 to 2678400000"},
		"negative":            {lock.Closing{For: -1}, "closed_ms", ""},
		"every period":        {closing: lock.Closing{Period: lock.Week, Zone: "Europe/Berlin"}},
		"no period":           {lock.Closing{Period: "year"}, "once_per", "use minute, hour, day, week or month"},
		"no zone":             {lock.Closing{Period: lock.Day, Zone: "Europe/Atlantis"}, "time_zone", "such as Europe/Berlin"},
		"the server's zone":   {lock.Closing{Period: lock.Day, Zone: "Local"}, "time_zone", "IANA"},
		"a zone of no period": {lock.Closing{For: time.Hour, Zone: "UTC"}, "time_zone", "leave it out"},
	} {
		_, err := lock.Release{Locks: []string{"a"}, LeaseID: id(1), Closed: c.closing}.Resolve()
		e := new(lock.Error)
		if errors.As(err, &e); e.Field != c.field || !strings.Contains(e.Detail, c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
