package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type getCommand struct {
	Name string `arg:"" optional:"" complete:"lock" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	retryFlags
	envOutputFlags
	watchFlag

	Session string `placeholder:"SESSION" complete:"session" help:"Show this session instead of a lock. Give its public name, as list --sessions shows it."`
}

func (getCommand) Help() string {
	return `Prints the state of a lock and its holders. A lock that was never used is free.

    paddock get jobs:nightly
    paddock get jobs:nightly -o json | jq -r '.leases[].holder'
    paddock get jobs:nightly --watch
    paddock get --session 9f2c4b7a1e0d5386

With -o env the variables are PADDOCK_STATE, PADDOCK_NEWEST_TOKEN, PADDOCK_HELD_BY and PADDOCK_WAITERS. The token is
that of the lock's newest lease, which need not be yours.`
}

func (c *getCommand) Run(ctx context.Context, p *program) error {
	switch {
	case (c.Name == "") == (c.Session == ""):
		return usagef("give either the name of a lock, or --session with the public name of a session")
	case c.Session != "" && c.Output == asEnv:
		return usagef("--output=env is not available for a session; use table or json")
	case c.Watch && (c.Session != "" || c.Output == asEnv):
		return usagef("--watch is for a lock, and not for --output env; leave it out")
	case c.Session != "":
		return c.showSession(ctx, p)
	case c.Watch:
		return c.watch(ctx, p)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (lock.Lock, error) { return locks.Lock(ctx, c.Name) })
	if err != nil {
		return err
	}
	return p.print(c.Output, showLock(found))
}

type listCommand struct {
	serviceFlags
	retryFlags
	outputFlags
	watchFlag

	Prefix    string `placeholder:"TEXT" complete:"scope" help:"Only locks whose names begin with this."`
	Contains  string `placeholder:"TEXT" help:"Only locks whose names contain this."`
	State     string `placeholder:"STATE" complete:"free,held,grace,suspect" help:"Only locks in this state: free, held, grace or suspect."`
	Holder    string `placeholder:"TEXT" help:"Only locks with exactly this holder."`
	Contended bool   `help:"Only locks with waiters."`
	Sort      string `placeholder:"ORDER" complete:"waiters,age,ending" help:"waiters (the most first), age (held longest) or ending (expires soonest), without free locks, and at most 1,000. Without it: by name."`
	Sessions  bool   `help:"List the sessions that have not ended, instead of locks. Only --holder and --limit apply to them."`
	Tree      string `placeholder:"ROOT" complete:"tree" help:"Draw this tree: the locks in it that are held or waited for, by level."`
	Limit     int    `default:"0" placeholder:"N" help:"Maximum number of locks; 0 for all."`
}

func (listCommand) Help() string {
	return `Prints the known locks, ordered by name. A free lock that is idle for long is forgotten.

    paddock list --prefix jobs: --state held
    paddock list --contended --sort waiters --limit 10
    paddock list --contended --watch
    paddock list --sessions
    paddock list --tree repo
    paddock list --state suspect -o name | xargs -n 1 paddock history
    paddock list -o json | jq -r '.[] | select(.waiters > 0) | .name'`
}

func (c *listCommand) Run(ctx context.Context, p *program) error {
	if c.Limit < 0 {
		return usagef("--limit is %d; give a maximum number of locks, or 0 for all", c.Limit)
	}
	if c.Watch && (c.Sessions || c.Tree != "") {
		return usagef("--watch is for locks, and not for --sessions or --tree; leave it out")
	}
	if c.Sessions {
		return c.listSessions(ctx, p)
	}
	if c.Tree != "" {
		return c.listTree(ctx, p)
	}
	query := paddock.LockQuery{
		Prefix: c.Prefix, Contains: c.Contains, State: lock.State(c.State), Holder: c.Holder, Contended: c.Contended,
		Sort: paddock.LockOrder(c.Sort),
	}
	if _, err := query.Resolve(); err != nil {
		return explain(err)
	}
	if c.Watch {
		return c.watch(ctx, p, query)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) ([]lock.Lock, error) { return c.collect(ctx, p, locks, query) })
	if err != nil {
		return err
	}
	return p.print(c.Output, showLocks(found))
}

// collect reads all pages, or as many as the limit needs. A sorted list has one.
func (c *listCommand) collect(ctx context.Context, p *program, locks paddock.Service, query paddock.LockQuery) ([]lock.Lock, error) {
	var found []lock.Lock
	for {
		query.Limit = paddock.DefaultLimit
		if query.Sort != paddock.ByName {
			query.Limit = paddock.MaxLimit
		}
		if c.Limit > 0 {
			query.Limit = min(query.Limit, c.Limit-len(found))
		}
		page, err := locks.Locks(ctx, query)
		if err != nil {
			return nil, err
		}
		warnUnreadable(p.log, page.Unreadable)
		found = append(found, page.Items...)
		if page.Next == "" || c.Limit > 0 && len(found) >= c.Limit {
			return found, nil
		}
		query.Cursor = page.Next
	}
}

// warnUnreadable logs the rows that a list leaves out.
func warnUnreadable(log *slog.Logger, rows []paddock.Unreadable) {
	for _, u := range rows {
		log.Warn("left out: a row of the database cannot be read", "name", u.Name, "detail", u.Detail)
	}
}

type queueCommand struct {
	Name string `arg:"" complete:"lock" help:"The lock's name, such as jobs:nightly."`
	serviceFlags
	retryFlags
	outputFlags
}

func (queueCommand) Help() string {
	return `Prints the waiters of a lock in the order in which they are served, and what blocks each of them.
Then the chain of the first one, to its root: what the holder of the lock waits for in turn, and so on, as far as the
task ids of "paddock run", "paddock session" and the SDKs show it.

    paddock queue jobs:nightly`
}

func (c *queueCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (lock.QueueInfo, error) { return locks.Queue(ctx, c.Name) })
	if err != nil {
		return err
	}
	return p.print(c.Output, showQueue(found))
}

// showLease returns the output for a lease, for its holder.
func showLease(g lock.Grant) output {
	if len(g.Leases) > 1 {
		return showLeaseSet(g)
	}
	return output{wire: wire.LeaseOf(g), names: []string{g.Name}, env: variablesFrom(g), table: func(s *table) {
		s.field("LOCK", g.Name)
		s.field("LEASE ID", uuid.UUID(g.ID).String())
		s.field("TOKEN", token(g.Token))
		s.field("MODE", modeAndSlot(g.Mode, g.Slot, g.Slots))
		s.field("HOLDER", g.Holder)
		s.field("EXPIRES", expiry(g))
		if g.Metadata != nil {
			s.field("METADATA", string(g.Metadata))
		}
	}}
}

// expiry returns the end of a lease, for people.
func expiry(g lock.Grant) string {
	return fmt.Sprintf("%s (in %s)", local(g.ExpiresAt), short(max(time.Until(g.Until), 0)))
}

// variablesFrom returns the shell variables of a lease.
func variablesFrom(g lock.Grant) []variable {
	return append(leaseVariables(guard.MembersOf(g)),
		variable{"PADDOCK_LEASE_ID", uuid.UUID(g.ID).String()},
		variable{"PADDOCK_EXPIRES_AT", g.ExpiresAt.UTC().Format(time.RFC3339Nano)})
}

// showLock returns the output for a lock, for any reader. Its variables differ from those of a lease, so that no
// script takes another holder's token for its own.
func showLock(l lock.Lock) output {
	return output{wire: wire.LockOf(l), names: []string{l.Name}, env: []variable{
		{"PADDOCK_STATE", string(l.State)}, {"PADDOCK_NEWEST_TOKEN", strconv.FormatInt(int64(l.Token), 10)},
		{"PADDOCK_HELD_BY", firstOf(l).Holder}, {"PADDOCK_WAITERS", strconv.Itoa(l.Waiters)},
	}, table: func(s *table) {
		s.field("LOCK", l.Name)
		s.field("STATE", string(l.State))
		s.field("NEWEST TOKEN", token(l.Token))
		s.field("CHANGED", local(l.ChangedAt))
		if l.Capacity > 0 {
			s.field("PERMITS", fmt.Sprintf("%d of %d taken", l.PermitsOut(), l.Capacity))
		}
		s.field("WAITING", waiting(l))
		for _, row := range whyShut(l) {
			s.field(row[0], row[1])
		}
		rows, sets := [][]string{{"HOLDER", "MODE", "TOKEN", "ACQUIRED", "EXPIRES", "LEFT", "METADATA"}}, []string(nil)
		for _, h := range l.Leases {
			rows = append(rows, []string{h.Holder, modeAndSlot(h.Mode, h.Slot, h.Slots), token(h.Token), local(h.AcquiredAt),
				local(h.ExpiresAt), remaining(h), cmp.Or(string(h.Metadata), none)})
			sets = append(sets, together(l.Name, h.Set))
		}
		if len(l.Leases) > 0 {
			s.rowsWithSets(rows, sets)
		}
		s.elsewhere("HELD ABOVE", l.Above)
		s.elsewhere("HELD BELOW", l.Below)
	}}
}

// showLocks returns the output for many locks, one per row.
func showLocks(locks []lock.Lock) output {
	names := namesIn(locks, func(l lock.Lock) string { return l.Name })
	return output{wire: wire.MapSlice(locks, wire.LockOf), names: names, empty: "No locks found.", table: func(s *table) {
		rows := [][]string{{"LOCK", "STATE", "MODE", "TOKEN", "HOLDER", "EXPIRES", "LEFT", "WAITING"}}
		var sets, shut []string
		for _, l := range locks {
			sets, shut = append(sets, together(l.Name, firstOf(l).Set)), append(shut, shutText(l))
			rows = append(rows, lockCells(l))
		}
		withColumn(rows, "NO GRANTS", shut)
		s.rowsWithSets(rows, sets)
	}}
}

// lockCells returns the cells of a lock in a list.
func lockCells(l lock.Lock) []string {
	if len(l.Leases) == 0 {
		return []string{l.Name, string(l.State), none, token(l.Token), none, none, none, waiting(l)}
	}
	h := firstOf(l)
	holder := h.Holder
	if n := len(l.Leases) - 1; n > 0 {
		holder += fmt.Sprintf(" and %d more", n)
	}
	return []string{l.Name, string(l.State), h.Mode.String(), token(l.Token), holder, local(h.ExpiresAt), remaining(h),
		waiting(l)}
}

// waiting returns how many calls wait for the lock, and for locks below it in a tree.
func waiting(l lock.Lock) string {
	if l.WaitersBelow > 0 {
		return fmt.Sprintf("%d, %d below", l.Waiters, l.WaitersBelow)
	}
	return strconv.Itoa(l.Waiters)
}

// showQueue returns the output for a queue.
func showQueue(q lock.QueueInfo) output {
	holders := namesIn(q.Waiters, func(w lock.WaiterInfo) string { return w.Holder })
	return output{wire: wire.QueueOf(q), names: holders, empty: "No call waits for " + q.Name + ".", table: func(s *table) {
		rows, sets := [][]string{{"POSITION", "HOLDER", "MODE", "JOINED", "WAITED", "BLOCKED BY"}}, []string(nil)
		for _, w := range q.Waiters {
			holder := w.Holder
			if w.Name != "" {
				holder += ", for " + w.Name
			}
			rows = append(rows, []string{strconv.Itoa(w.Position), holder, modeAndPermits(w), local(w.JoinedAt), short(w.Waited),
				blockedBy(w)})
			sets = append(sets, together(q.Name, w.Set))
		}
		s.rowsWithSets(rows, sets)
		s.chain(q.Chain)
	}}
}

// chain adds what the first waiter waits for in the end, unless the table shows it already.
func (t *table) chain(c *lock.WaitChain) {
	if c == nil || c.Plain() {
		return
	}
	t.head("CHAIN", "WAITS FOR", "IN THE WAY")
	for _, s := range c.Steps {
		t.row(s.Holder, s.Name, s.Obstacle())
	}
	t.text(c.Conclusion())
}

// blockedBy returns what blocks a waiter.
func blockedBy(w lock.WaiterInfo) string {
	switch {
	case w.BlockedBy == lock.BlockedByQueue && w.BlockedAt != "":
		return fmt.Sprintf("%d ahead in the queue of %s", w.Ahead, w.BlockedAt)
	case w.BlockedBy == lock.BlockedByQueue:
		return fmt.Sprintf("%d ahead in the queue", w.Ahead)
	case w.BlockedBy == lock.BlockedByDisconnect:
		return fmt.Sprintf("client disconnected; place kept for %s", short(w.KeptFor))
	case w.BlockedBy == lock.BlockedByClosure && w.BlockedAt != "":
		return fmt.Sprintf("%s is closed or frozen; paddock get %s shows why", w.BlockedAt, w.BlockedAt)
	case w.BlockedBy == lock.BlockedByClosure:
		return "the lock is closed or frozen; paddock get shows why"
	case w.BlockedBy == lock.BlockedByPause:
		return "grants are paused by a new epoch; paddock epoch list shows until when"
	case len(w.Leases) == 0:
		return "nothing is seen; it is next"
	}
	text := fmt.Sprintf("%s (token %d)", w.Leases[0].Holder, w.Leases[0].Token)
	if w.BlockedAt != "" {
		text += " at " + w.BlockedAt
	}
	if n := len(w.Leases) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// firstOf returns the first lease of a lock, zero if there is none.
func firstOf(l lock.Lock) lock.LeaseInfo {
	if len(l.Leases) == 0 {
		return lock.LeaseInfo{}
	}
	return l.Leases[0]
}

// remaining returns the rest of a lease, or says that it is suspect, in its grace or revoked.
func remaining(h lock.LeaseInfo) string {
	if h.Revoked {
		return "revoked, grace"
	}
	if h.Suspect {
		return "suspect"
	}
	if h.Remaining == 0 && h.Grace > 0 {
		return "grace"
	}
	return short(h.Remaining)
}

func modeAndSlot(m lock.Mode, slot int, all lock.Slots) string {
	switch {
	case slot == 0:
		return m.String()
	case all != "":
		return fmt.Sprintf("%d permits, %s", all.Count(), all.Text(slot))
	}
	return m.String() + ", " + all.Text(slot)
}

func modeAndPermits(w lock.WaiterInfo) string {
	if w.Permits > 1 {
		return fmt.Sprintf("%d permits", w.Permits)
	}
	return w.Mode.String()
}

// token returns the token, or a dash for none.
func token(t lock.Token) string {
	if t == 0 {
		return none
	}
	return strconv.FormatInt(int64(t), 10)
}
