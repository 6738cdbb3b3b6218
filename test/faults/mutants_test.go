package faults_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/verify"
)

// A mutant is Paddock with one text in one file replaced.
type mutant struct {
	name     string
	file     string // from the root of the module
	from, to string
	mode     mode // how it is used
}

// mutants are the builds that the checker must find. Each quotes a text of the product that must occur exactly
// once; a change of that text must also change the mutant.
var mutants = []mutant{
	{name: "a grant without the row lock", file: "store/sql/lock_anchors.sql", from: "    for update\n", to: "\n"},
	{name: "a commit overwrites changed rows", file: "store/sql/swap.sql",
		from: "l.ctid = n.at and l.xmin = n.version", to: "l.slot = 0"},
	{name: "the clock is read before the lock", file: "store/sql/draw.sql", from: "select clock_timestamp()",
		to: "select transaction_timestamp()"},
	{name: "tokens are drawn before the lock", file: "store/load.go",
		from: "\tb.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)\n",
		to: `	var early []int64
	b.Queue(sqlDrawMore, w.tokens, 0).QueryRow(func(row pgx.Row) error { return row.Scan(&early, new([]int64)) })
	b.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)
	defer func() { t.tokens = early }()
`},
	{name: "a renewal revives an expired lease", file: "lock/renew_release.go",
		from: "func (r Renew) Apply(v View) Decision {\n\td := newDecider(v)",
		to:   "func (r Renew) Apply(v View) Decision {\n\td := &decider{view: v, now: v.Now, record: v.Locks[0]}"},
	{name: "promotion ignores readers", file: "lock/queue.go",
		from: "!d.record.isCompatible(w.Lease.Mode, w.Capacity)",
		to:   "!d.record.isCompatible(w.Lease.Mode, w.Capacity) && d.record.Leases[0].Mode != Shared"},
	{name: "commits are not durable", file: "store/sql/settings.sql", mode: crashed,
		from: "else current_setting('synchronous_commit') end", to: "else 'off' end"},
	{name: "the queue is last in, first out", file: "lock/queue.go", mode: neverCancelled,
		from: "queue, blocked := d.record.Queue, false\n",
		to:   "queue, blocked := slices.Clone(d.record.Queue), false\n\tslices.Reverse(queue)\n"},
	{name: "a fenced write ignores its token", file: "lock/fence.go", from: "case token < greatest:",
		to: "case token < 0:"},
	{name: "a release is answered but not written", file: "lock/renew_release.go", from: "\t\td.endLease(l, Released, \"\")\n",
		to: "\t\t_ = l\n"},
	{name: "a retried acquire grants a second lease", file: "lock/acquire.go",
		from: "if l, ok := d.lease(a.LeaseID); ok {", to: "if l, ok := d.lease(a.LeaseID); ok && !ok {"},
	{name: "the tail of events drops one", file: "store/tail.go",
		from: "\tt.events = append(t.events, events...)\n",
		to:   "\tt.events = append(t.events, events[:max(len(events)-1, 0)]...)\n"},
	{name: "readers pass open transactions", file: "store/events.go", from: "\tif open != nil {\n",
		to: "\tif open != nil && end.newest < 0 {\n"},
	{name: "the cursor after a page is one too far", file: "store/events.go", from: "\t\treturn events[limit-1].ID\n",
		to: "\t\treturn events[limit-1].ID + 1\n"},
	{name: "a streamed event has the id of the previous one", file: "server/stream.go",
		from: "return encodeSSE(eventID(e), ", to: "return encodeSSE(strconv.FormatInt(e.ID-1, 10), "},
	{name: "a reconnected stream starts at the end", file: "internal/wire/query.go",
		from: "cmp.Or(ValueOf(p.LastEventID), q.Cursor)", to: "cmp.Or(q.Cursor, ValueOf(p.LastEventID))"},
	{name: "readers trust the sequence's last value", file: "store/sql/events_end.sql", mode: crashed,
		from: "greatest((select max(id) from paddock.events), (select pruned from paddock.horizon), 0)",
		to:   "(select case when is_called then last_value else 0 end from paddock.event_ids)"},
	{name: "the epoch check ignores tokens and events", file: "store/epoch.go", mode: restored,
		from: "case e.lastToken < k.token, e.number == k.number && e.lastEvent < k.event:",
		to:   "case e.lastToken < 0:"},
	{name: "a revocation skips the grace", file: "lock/revoke.go", from: "case r.SkipGrace || d.isUndelivered(l)",
		to: "case true || d.isUndelivered(l)"},
	{name: "places of dead replicas count", file: "lock/queue.go", mode: replicaLost,
		from: "d.attached(w) || d.view.Now.Before(w.AliveUntil.Add(PlaceRetention))", to: "w.Place > 0"},
	{name: "an expiry forgets the grace", file: "lock/lease.go", from: "return l.ExpiresAt.Add(l.Grace)",
		to: "return l.ExpiresAt"},
}

// How many rounds may be needed to find a mutant, and how many Paddock itself must pass.
const (
	roundsToFind = 15
	roundsToBear = 3
)

// TestCheckerFindsMutants proves that the checker can fail: each mutant must be found under the same use that
// Paddock itself must pass.
func TestCheckerFindsMutants(t *testing.T) {
	t.Parallel()
	a := newTrialPool(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			a.admit(t)
			x := a.trial(t, m.build(t), m.mode)
			for round := range roundsToFind {
				if report := x.round(round); !report.OK() {
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.admit(t)
			x := a.trial(t, program(t), how)
			for round := range roundsToBear {
				if report := x.round(round); !report.OK() {
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

// build builds the mutant and returns the path of the program.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	original, err := filepath.Abs(filepath.Join("../..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		t.Fatalf("update the mutant: %s contains this text %d times, want once:\n%s", m.file, n, m.from)
	}
	dir := t.TempDir()
	broken := written(t, dir, filepath.Base(m.file), []byte(strings.Replace(string(text), m.from, m.to, 1)))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		t.Fatal(err)
	}
	return program(t, "-overlay", written(t, dir, "overlay.json", overlay))
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
