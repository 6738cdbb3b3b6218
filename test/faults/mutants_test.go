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

// A mutant is Paddock with one thing broken: in one file, at one place.
type mutant struct {
	name     string
	file     string // from the root of the module
	from, to string
	how      manner // in which it is used
}

// mutants are what the checker must find. Of each a line of the product is quoted that
// must be there exactly once: whoever changes that line mends the mutant.
var mutants = []mutant{
	{name: "a grant without the row lock", file: "store/sql/lock_anchors.sql", from: "    for update\n", to: "\n"},
	{name: "a swap overwrites what has changed", file: "store/sql/swap.sql", from: "l.ctid = n.at and l.xmin = n.version", to: "l.slot = 0"},
	{name: "the clock is read before the lock", file: "store/sql/draw.sql", from: "select clock_timestamp()", to: "select transaction_timestamp()"},
	{name: "tokens are drawn before the lock", file: "store/load.go",
		from: "\tb.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)\n",
		to: `	var early []int64
	b.Queue(sqlDrawMore, w.tokens, 0).QueryRow(func(row pgx.Row) error { return row.Scan(&early, new([]int64)) })
	b.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)
	defer func() { t.tokens = early }()
`},
	{name: "a renewal revives", file: "lock/renew.go",
		from: "\tt := begin(v)\n\tl, ok := t.lease(r.LeaseID)", to: "\tt := &turn{view: v, now: v.Now, state: v.Locks[0]}\n\tl, ok := t.lease(r.LeaseID)"},
	{name: "promotion ignores readers", file: "lock/queue.go",
		from: "!t.state.fits(w.Want.Mode, w.Capacity)", to: "!t.state.fits(w.Want.Mode, w.Capacity) && t.state.Leases[0].Mode != Shared"},
	{name: "commits are not durable", file: "store/sql/settings.sql", how: crashed,
		from: "else current_setting('synchronous_commit') end", to: "else 'off' end"},
	{name: "the queue is served last in first out", file: "lock/queue.go", how: orderly,
		from: "queue, blocked := t.state.Queue, false\n", to: "queue, blocked := slices.Clone(t.state.Queue), false\n\tslices.Reverse(queue)\n"},
	{name: "a fenced write ignores its token", file: "lock/fence.go", from: "case shown < greatest:", to: "case shown < 0:"},
	{name: "a release is answered and not written", file: "lock/release.go", from: "\t\tt.end(l, Released, \"\")\n", to: "\t\t_ = l\n"},
	{name: "a replay gives a second lease", file: "lock/acquire.go", from: "if l, ok := t.lease(a.LeaseID); ok {", to: "if l, ok := t.lease(a.LeaseID); ok && !ok {"},
	{name: "the reader of new events drops one", file: "store/tail.go",
		from: "\tt.events = append(t.events, events...)\n", to: "\tt.events = append(t.events, events[:max(len(events)-1, 0)]...)\n"},
	{name: "readers pass transactions that are open", file: "store/events.go", from: "\tif open != nil {\n", to: "\tif open != nil && end.newest < 0 {\n"},
	{name: "the cursor after a page is one too far", file: "store/events.go", from: "\t\treturn events[limit-1].ID\n", to: "\t\treturn events[limit-1].ID + 1\n"},
	{name: "the id of a streamed event is that of the one before", file: "server/stream.go",
		from: "return encodeSSE(eventID(e), ", to: "return encodeSSE(strconv.FormatInt(e.ID-1, 10), "},
	{name: "a reconnected stream begins now", file: "internal/wire/query.go",
		from: "cmp.Or(ValueOf(p.LastEventID), q.Cursor)", to: "cmp.Or(q.Cursor, ValueOf(p.LastEventID))"},
	{name: "readers trust the sequence", file: "store/sql/events_end.sql", how: crashed,
		from: "greatest((select max(id) from paddock.events), (select pruned from paddock.horizon), 0)",
		to:   "(select case when is_called then last_value else 0 end from paddock.event_ids)"},
	{name: "the epoch check ignores tokens and events", file: "store/epoch.go", how: restored, from: "case e.lastToken < k.token, e.number == k.number && e.lastEvent < k.event:", to: "case e.lastToken < 0:"},
	{name: "a revocation skips the grace", file: "lock/revoke.go", from: "case r.SkipGrace || t.untold(l)", to: "case true || t.untold(l)"},
	{name: "places of the dead count", file: "lock/waiter.go", how: bereft,
		from: "t.attached(w) || t.view.Now.Before(w.AliveUntil.Add(KeepPlace))", to: "w.Place > 0"},
	{name: "an expiry forgets the grace", file: "lock/lease.go", from: "return l.ExpiresAt.Add(l.Grace)", to: "return l.ExpiresAt"},
}

// What is done to find a mutant at most, and what Paddock itself must bear.
const (
	roundsToFind = 15
	roundsToBear = 3
)

// TestTheCheckerFindsWhatIsBroken proves that it can fail: each mutant is used as
// badly as Paddock itself, and must be found. Paddock itself must not be.
func TestTheCheckerFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			a.enter(t)
			x := a.trial(t, m.build(t), m.how)
			for round := range roundsToFind {
				if report := x.round(round); !report.OK() {
					t.Logf("found after %d calls, by %s", x.calls, findings(report))
					return
				}
			}
			t.Errorf("%d calls were made, and the checker found nothing", x.calls)
		})
	}
	for name, how := range map[string]manner{
		"but not in what is whole": provoked, "nor if PostgreSQL crashes": crashed, "nor if all are orderly": orderly,
		"nor if PostgreSQL is restored":          restored,
		"nor if a replica dies with its waiters": bereft,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.enter(t)
			x := a.trial(t, program(t), how)
			for round := range roundsToBear {
				if report := x.round(round); !report.OK() {
					var said strings.Builder
					if err := report.WriteText(&said); err != nil {
						t.Error(err)
					}
					t.Fatal(said.String())
				}
			}
			if x.unasked != nil {
				t.Error(x.unasked)
			}
			t.Logf("%d calls, and nothing was found", x.calls)
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
		t.Fatalf("the mutant needs mending: %s has %d times what is to be broken there:\n%s", m.file, n, m.from)
	}
	dir := t.TempDir()
	broken := written(t, dir, filepath.Base(m.file), []byte(strings.Replace(string(text), m.from, m.to, 1)))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		t.Fatal(err)
	}
	return program(t, "-overlay", written(t, dir, "overlay.json", overlay))
}

// findings says which checks have found how much, and what the first of them found.
func findings(r verify.Report) string {
	var by []string
	first := ""
	for _, c := range r.Checks {
		if n := len(c.Violations); n > 0 {
			by = append(by, fmt.Sprintf("%q (%d)", c.Name, n))
			first = cmp.Or(first, c.Violations[0].What)
		}
	}
	return strings.Join(by, ", ") + ": " + first
}
