package faults_test

import (
	"cmp"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/verify"
)

// A mutant is Paddock with one text in one file replaced. Where the file is Go, the new text says MUTATED for a
// condition that is true in the mutant only: all mutants share one build, see mutatedBuild.
type mutant struct {
	name     string
	file     string // from the root of the module
	from, to string
	mode     mode // how it is used
	short    bool // the short form looks for it, too
}

// mutants are the builds that the checker must find. Each quotes a text of the product that must occur exactly
// once; a change of that text must also change the mutant.
//
// The short form looks for one mutant of each mode, except for the mode restored, whose only mutant needs many rounds.
// It tests Paddock; that the tests can fail is for the long form.
var mutants = []mutant{
	{name: "a commit overwrites changed rows", file: "store/internal/row/sql/swap.sql",
		from: "r.ctid = n.tid and r.xmin = n.xmin and r.name is not distinct from n.name", to: "r.name = n.name"},
	{name: "a commit writes locks of the same transaction", file: "store/internal/row/sql/swap.sql",
		from: "r.ctid = n.tid and r.xmin = n.xmin and r.name is not distinct from n.name", to: "r.xmin = n.xmin"},
	{name: "a connection keeps tokens for later", file: "store/internal/row/sql/swap.sql",
		from: "nextval('paddock.event_batch_ids') as batch",
		to:   "nextval('paddock.event_batch_ids') * 2 + pg_backend_pid() % 2 * 129 as batch"},
	{name: "events are committed without a mark", file: "store/internal/row/sql/swap.sql",
		from: "pg_advisory_xact_lock_shared($7::bigint | case when is_called then last_value else 0 end)",
		to:   "($7::bigint | case when is_called then last_value else 0 end)"},
	{name: "a renewal revives an expired lease", file: "lock/renew_release.go",
		from: "func (r Renew) Apply(v View) Decision {\n\tds := newDeciders(v)\n",
		to: `func (r Renew) Apply(v View) Decision {
	ds := newDeciders(v)
	for i, d := range ds {
		if MUTATED {
			*d = decider{view: &v, now: v.Now, record: v.Locks[i], drawn: d.drawn}
		}
	}
`},
	{name: "promotion ignores readers", file: "lock/queue.go",
		from: "!d.record.isCompatible(w.Lease.Mode, w.Capacity)",
		to:   "!d.record.isCompatible(w.Lease.Mode, w.Capacity) && (!MUTATED || d.record.Leases[0].Mode != Shared)"},
	{name: "commits are not durable", short: true, file: "store/internal/database/sql/settings.sql", mode: crashed,
		from: "else current_setting('synchronous_commit') end", to: "else 'off' end"},
	{name: "the queue is last in, first out", short: true, file: "lock/queue.go", mode: neverCancelled,
		from: "queue, blocked := d.record.Queue, modes(0)\n",
		to: `queue, blocked := d.record.Queue, modes(0)
	if MUTATED {
		queue = slices.Clone(queue)
		slices.Reverse(queue)
	}
`},
	{name: "a fenced write ignores its token", file: "lock/fence.go", from: "case token < greatest:",
		to: "case token < greatest && (!MUTATED || token < 0):"},
	{name: "a release is answered but not written", short: true, file: "lock/renew_release.go",
		from: "\t\td.endLease(l, Released, \"\")\n",
		to:   "\t\tif !MUTATED {\n\t\t\td.endLease(l, Released, \"\")\n\t\t}\n"},
	{name: "a retried acquire grants a second lease", file: "lock/acquire.go",
		from: "\tleases, all := ds.leases(a.LeaseID)\n",
		to:   "\tleases, all := ds.leases(a.LeaseID)\n\tif MUTATED {\n\t\tleases, all = nil, false\n\t}\n"},
	{name: "the tail of events drops one", file: "store/internal/eventlog/subscribe.go",
		from: "\tt.events = append(t.events, s.events...)\n",
		to: `	if MUTATED {
		s.events = s.events[:max(len(s.events)-1, 0)]
	}
	t.events = append(t.events, s.events...)
`},
	{name: "readers pass open transactions", file: "store/internal/eventlog/log.go", from: "\tif mark != nil {\n",
		to: "\tif mark != nil && (!MUTATED || b.newest < 0) {\n"},
	{name: "the cursor after a page is one too far", file: "store/internal/eventlog/log.go",
		from: "\t\ts.upTo, s.end = s.events[n-1].ID, false\n",
		to:   "\t\ts.upTo, s.end = s.events[n-1].ID, false\n\t\tif MUTATED {\n\t\t\ts.upTo++\n\t\t}\n"},
	{name: "a streamed event has the id of the previous one", file: "server/stream.go",
		from: "func sseEvent(e lock.Event) []byte { return",
		to: `func sseEvent(e lock.Event) []byte {
	if MUTATED {
		return encodeSSE(strconv.FormatInt(e.ID-1, 10), e.Kind.String(), wire.EventOf(e))
	}
	return genuine(e)
}

func genuine(e lock.Event) []byte { return`},
	{name: "a reconnected stream starts at the end", file: "internal/wire/query.go",
		from: "\tq.Cursor = cmp.Or(ValueOf(p.LastEventID), q.Cursor)\n",
		to: `	if MUTATED {
		q.Cursor = cmp.Or(q.Cursor, ValueOf(p.LastEventID))
	} else {
		q.Cursor = cmp.Or(ValueOf(p.LastEventID), q.Cursor)
	}
`},
	{name: "the epoch check ignores tokens and events", file: "store/internal/epoch/epoch.go", mode: restored,
		from: "case e.LastBatch < k.batch, e.Number == k.number && BatchOf(e.LastEvent) < BatchOf(k.event):",
		to:   "case !MUTATED && (e.LastBatch < k.batch || e.Number == k.number && BatchOf(e.LastEvent) < BatchOf(k.event)):"},
	{name: "a revocation skips the grace", file: "lock/revoke.go", from: "case r.SkipGrace || d.isUndelivered(l)",
		to: "case MUTATED || r.SkipGrace || d.isUndelivered(l)"},
	{name: "a place ends with its connection", short: true, file: "store/internal/waiters/registry.go", mode: cutOff,
		from: "KeepPlace: keepPlace && !c.nameless,", to: "KeepPlace: keepPlace && !c.nameless && !(MUTATED && disconnected),"},
	{name: "an expiry forgets the grace", file: "lock/lease.go", from: "\tend := l.ExpiresAt.Add(l.Grace)\n",
		to: "\tend := l.ExpiresAt.Add(l.Grace)\n\tif MUTATED {\n\t\tend = l.ExpiresAt\n\t}\n"},
	{name: "a lease outlives its session", file: "lock/lease.go", from: "= s.TTL, s.Grace, s.ExpiresAt\n",
		to: "= s.TTL, s.Grace, s.ExpiresAt\n\t\tif MUTATED {\n\t\t\tl.ExpiresAt = s.ExpiresAt.Add(time.Minute)\n\t\t}\n"},
	{name: "a session is renewed after its end", file: "lock/session.go", from: "case s.Ended != 0 || s.IsOver(now):",
		to: "case !MUTATED && (s.Ended != 0 || s.IsOver(now)):"},
	{name: "a heartbeat is answered but not written", file: "store/internal/sessions/keeper.go",
		from: "\t\t} else {\n\t\t\trow.QueueSaveSession(", to: "\t\t} else if !MUTATED || after.Ended != 0 {\n\t\t\trow.QueueSaveSession("},
	{name: "deadlocks are not broken", short: true, file: "store/internal/waiters/deadlock.go", mode: inCircles,
		from: "\tif len(names) == 0 {\n", to: "\tif MUTATED || len(names) == 0 {\n"},
	{name: "a set is granted in part", file: "lock/acquire.go", from: "\t\tleases[i] = ds[i].grant(want, members[i].Capacity, 0)\n",
		to: "\t\tif MUTATED && i > 0 {\n\t\t\tleases[i] = want.begunAt(ds[i].now)\n\t\t\treturn token\n\t\t}\n" +
			"\t\tleases[i] = ds[i].grant(want, members[i].Capacity, 0)\n"},
	{name: "a set waits while it holds a lock", file: "lock/queue.go", from: "\tcase w.Lease.Set == nil:\n",
		to: "\tcase w.Lease.Set == nil || MUTATED && w.WaitUntil.After(d.now.Add(1)):\n"},
	{name: "a set is overtaken by the waiters behind it", file: "lock/queue.go", mode: neverCancelled,
		from: "\t\td.ready = append(d.ready, w)\n",
		to:   "\t\tif d.ready = append(d.ready, w); MUTATED {\n\t\t\treturn w, true\n\t\t}\n"},
	{name: "a renewal of a set is written at one lock", file: "lock/renew_release.go", from: "\td.replaceLease(l)\n\tif updates {\n",
		to: "\tif !MUTATED || l.Set == nil || d.record.Name == l.Set[0] {\n\t\td.replaceLease(l)\n\t}\n\tif updates {\n"},
	{name: "a release of a set ends one lease", file: "lock/renew_release.go", from: "\t\tasked := r.Asked == nil ||",
		to: "\t\tif MUTATED && d != ds[0] {\n\t\t\tcontinue\n\t\t}\n\t\tasked := r.Asked == nil ||"},
	{name: "a revocation ends one lease of a set", file: "lock/revoke.go", from: "if i := d.index(l.ID); i >= 0 && slices.Equal(",
		to: "if i := d.index(l.ID); i >= 0 && (!MUTATED || d.record.Name == r.Name) && slices.Equal("},
	{name: "an acquire in a tree asks for nothing above", short: true, file: "lock/tree.go", mode: inTrees,
		from: "\t\tfor _, above := range path[:max(len(path)-1, 0)] {\n",
		to:   "\t\tfor _, above := range path[:max(len(path)-1, 0)] {\n\t\t\tif MUTATED {\n\t\t\t\tcontinue\n\t\t\t}\n"},
	{name: "an intention does not conflict with an exclusive lease", file: "lock/tree.go", mode: inTrees,
		from: "\tcase m == Exclusive || o == Exclusive:\n",
		to:   "\tcase (m == Exclusive || o == Exclusive) && !(MUTATED && (m.IsIntention() || o.IsIntention())):\n"},
	{name: "a waiter below passes one above", file: "lock/tree.go", mode: neverCancelled,
		from: "return (m.IsIntention() || o.IsIntention()) && m.isBeside(o) }",
		to:   "return (m.IsIntention() || o.IsIntention()) && (MUTATED || m.isBeside(o)) }"},
}

// roundsToFind is how many rounds may be needed to find a mutant. Most need one or two; a mutant that only a crash in
// a lull shows has needed 14 on a machine with ten times the work that it can do.
const roundsToFind = 100

// flagRounds is how many rounds Paddock itself must pass.
var flagRounds = repeats{
	flag.Int("faults.rounds", 0, "rounds of Paddock itself in TestCheckerFindsMutants; 0: 1, or 10 in the long form"),
	1, 10}

// TestCheckerFindsMutants proves that the checker can fail: each mutant must be found under the same use that
// Paddock itself must pass.
func TestCheckerFindsMutants(t *testing.T) {
	t.Parallel()
	a := newTrialPool(t)
	for _, m := range mutants {
		if !m.short && !*flagLong {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x := a.trial(t, m.build(t), m.mode)
			for round := range roundsToFind {
				x.perRound = callsPerSearch
				if round == 0 {
					x.perRound = callsOfFirstRound
				}
				report := x.round(round)
				if x.missing != nil {
					t.Logf("found after %d calls: %v", x.calls, x.missing)
					return
				}
				if !report.OK() {
					t.Logf("found after %d calls by %s", x.calls, summarize(report))
					return
				}
			}
			t.Errorf("the checker found nothing in %d calls", x.calls)
		})
	}
	for name, how := range map[string]mode{
		"Paddock passes": disturbed, "Paddock passes when PostgreSQL crashes": crashed,
		"Paddock passes when no call is cancelled":            neverCancelled,
		"Paddock passes when PostgreSQL is restored":          restored,
		"Paddock passes when a replica dies with its waiters": replicaLost,
		"Paddock passes when tasks wait in circles":           inCircles,
		"Paddock passes when locks are in a tree":             inTrees,
		"Paddock passes when connections are cut":             cutOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := a.trial(t, program(t), how)
			for round := range flagRounds.count() {
				report := x.round(round)
				x.must(x.missing)
				if !report.OK() {
					var text strings.Builder
					if err := report.WriteText(&text); err != nil {
						t.Error(err)
					}
					t.Fatal(text.String())
				}
			}
			if x.unexpected != nil {
				t.Error(x.unexpected)
			}
			t.Logf("%d calls without a violation", x.calls)
		})
	}
}

// summarize lists the checks that found violations, and the first violation.
func summarize(r verify.Report) string {
	var by []string
	first := ""
	for _, c := range r.Checks {
		if n := len(c.Violations); n > 0 {
			by = append(by, fmt.Sprintf("%q (%d)", c.Name, n))
			first = cmp.Or(first, c.Violations[0].Message)
		}
	}
	return strings.Join(by, ", ") + ": " + first
}
