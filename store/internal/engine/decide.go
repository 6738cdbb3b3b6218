package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// A unit is the calls that are decided together, in order: those about one lock, or about locks that commands on
// several of them connect.
type unit struct {
	names []string // in order
	calls []*call

	rows   []*row.Row // of the names
	cached bool       // the rows and the clock were in the cache
	fresh  bool       // the rows were read in this attempt
	// unreadable: not all of the rows could be read, so nothing is decided in this attempt.
	unreadable bool

	// Set by decide:
	decided  bool          // with success
	at       time.Time     // the instant of the decisions
	outcomes []row.Outcome // of the calls
	changes  []*row.Change // of the names
	events   int           // in all changes, at most row.EventsPerBatch
	writes   bool          // something is to be written
	// deferred are the last calls: there is no room for their events or tokens, or they compare a token that is not
	// known yet.
	deferred []*call
	tooLong  error // a lease is longer than the epoch allows for
	tokens   int   // granted by the decisions, at most row.TokensPerBatch
}

// unitsOf groups the calls, as they are decided under the policy.
func unitsOf(calls []*call, in *policy.Snapshot) []*unit {
	byName := make(map[string]*unit, len(calls))
	var all []*unit
	for _, c := range calls {
		c.Req.in(in)
		u := byName[c.Req.names[0]]
		if u == nil {
			u = &unit{}
			all = append(all, u)
		}
		for _, name := range c.Req.names {
			switch other := byName[name]; other {
			case nil:
				byName[name], u.names = u, append(u.names, name)
			case u:
			default: // a command connects them
				for _, name := range other.names {
					byName[name] = u
				}
				u.names, other.names = append(u.names, other.names...), nil
			}
		}
	}
	for _, c := range calls {
		u := byName[c.Req.names[0]]
		u.calls = append(u.calls, c)
	}
	all = slices.DeleteFunc(all, func(u *unit) bool { return len(u.calls) == 0 })
	for _, u := range all {
		slices.Sort(u.names)
		u.rows = make([]*row.Row, len(u.names))
	}
	slices.SortFunc(all, func(a, b *unit) int { return strings.Compare(a.names[0], b.names[0]) })
	return all
}

// change returns the change of one of the unit's locks.
func (u *unit) change(name string) *row.Change {
	i, _ := slices.BinarySearch(u.names, name) // there may be thousands
	return u.changes[i]
}

// inputs are what decisions are made on.
type inputs struct {
	self   lock.Replica
	epoch  epoch.Epoch
	policy *lock.Policy
	now    time.Time
	// allowHold is that of the Options.
	allowHold bool
	ended     map[lock.LeaseRef]lock.Event // as far as it was read
	// sessions are those of the calls, as far as they were read.
	sessions row.Sessions
}

// A verdict says whether a unit was decided.
type verdict int

const (
	success    verdict = iota
	needsLook          // it must be read first
	needsEpoch         // a lease is longer than the epoch allows for
)

// decide decides the calls of the unit, in order, each on what the ones before it left. This is the only place where
// commands are decided.
//
// What is in the cache may be stale, so a unit that is not fresh is decided only if the swap will prove it: if it
// writes something, needs no ending and no session that was not read, tells no end of a session, does not take a
// waiter's replica for dead, and claims nothing that the cache does not have. After the end of a session, nothing is
// decided about its leases until the next look has recorded the end.
func (u *unit) decide(in *inputs) verdict {
	u.decided = false
	u.calls, u.deferred = append(u.calls, u.deferred...), nil
	u.at, u.changes, u.tokens, u.events, u.writes = in.now, u.changes[:0], 0, 0, false
	u.outcomes = slices.Grow(u.outcomes[:0], len(u.calls))
	for _, before := range u.rows {
		if !u.fresh && heartbeatMayExpire(before.Record.Queue, in.now, in.self) || before.Sessions.Undecided(in.now) {
			return needsLook
		}
		u.changes = append(u.changes, &row.Change{At: in.now, Before: before, After: before.Record, Sessions: before.Sessions})
	}
	ended, copied := in.ended, false
	for i, c := range u.calls {
		r := &c.Req
		if r.traits.ReadsToken && u.change(r.names[0]).After.Token.IsProvisional() {
			u.calls, u.deferred = u.calls[:i], u.calls[i:]
			break
		}
		if !u.fresh && (!u.knowsEndings(r, ended) || u.tellsEndOfSession(r)) || !u.bindSession(r, in) {
			return needsLook
		}
		d, tokens := u.apply(r, in, ended)
		if r.traits.Queue == lock.Claims && d.Queued && !u.fresh {
			return needsLook // the call was woken, so the lock has changed
		}
		if u.tooLong = in.epoch.CheckLength(epoch.LongestOf(d)); u.tooLong != nil {
			return needsEpoch
		}
		if u.events+len(d.Events) > row.EventsPerBatch || u.tokens+tokens > row.TokensPerBatch {
			u.calls, u.deferred = u.calls[:i], u.calls[i:]
			break
		}
		u.events, u.tokens = u.events+len(d.Events), u.tokens+tokens
		u.record(r, d)
		if i == len(u.calls)-1 {
			break // nothing is decided after it
		}
		if !copied && endsLease(d.Events) {
			if ended, copied = maps.Clone(ended), true; ended == nil {
				ended = make(map[lock.LeaseRef]lock.Event)
			}
		}
		for _, e := range d.Events {
			if e.Ref != 0 {
				ended[e.Ref] = e
			}
		}
	}
	if !u.writes && !u.fresh {
		return needsLook
	}
	u.decided = true
	return success
}

// apply decides one command, and returns how many tokens that took.
func (u *unit) apply(r *request, in *inputs, ended map[lock.LeaseRef]lock.Event) (d lock.Decision, tokens int) {
	v := lock.View{Now: in.now, Caller: r.caller, Self: in.self, Ended: ended, Sessions: in.sessions, GrantsPausedUntil: in.epoch.ClosedUntil, Policy: in.policy}
	v.LeasesMayBeLost = !in.epoch.Quorum && !in.allowHold
	v.Locks = make([]lock.Record, 0, len(r.names))
	for _, name := range r.names {
		v.Locks = append(v.Locks, u.change(name).After)
	}
	v.Tokens = func() lock.Token {
		tokens++
		return lock.Provisional(u.tokens + tokens - 1)
	}
	if d = r.decided.Apply(v); len(d.Events) > row.EventsPerBatch {
		d, tokens = lock.Decision{Now: in.now, Locks: v.Locks, Err: database.Internal(errEvents, "")}, 0
		if len(v.Locks) > 1 { // each of them is swept by itself meanwhile
			d.Err = database.Busy(errEvents)
		}
	}
	return d, tokens
}

// setTokens replaces the provisional tokens of what was decided by those that were granted.
func (u *unit) setTokens(w row.Written) {
	if u.tokens == 0 {
		return
	}
	first := w.Token(u.changes[0].FirstToken)
	for _, c := range u.changes {
		c.After.SetTokens(first)
	}
	for i := range u.outcomes {
		u.outcomes[i].SetTokens(first)
	}
}

// errEvents is the cause of the refusal of a command whose events have no room in one row. Package lock bounds those
// of one lock.
var errEvents = errors.New("a command has too many events")

// record notes what was decided.
func (u *unit) record(r *request, d lock.Decision) {
	u.outcomes = append(u.outcomes, row.Outcome{Decision: d})
	for _, after := range d.Locks {
		c := u.change(after.Name)
		c.After = after
	}
	for _, e := range d.Events {
		c := u.change(e.Name)
		c.Events = append(c.Events, e)
	}
	for _, l := range d.SessionLosses {
		c := u.change(l.Name)
		c.SessionLosses = append(c.SessionLosses, l.Session)
	}
	u.writes = u.writes || d.Changed || r.mustBeDurable(d)
}

// mustBeDurable reports whether the caller may rely on the answer. A repeated acquire, for one, changes nothing, and is
// written all the same, so that what it confirms is as durable as a grant. A call that still waits is told nothing.
func (r *request) mustBeDurable(d lock.Decision) bool {
	return d.Err == nil && !d.Queued && !r.traits.NoAnswer
}

// heartbeatMayExpire reports whether a cached heartbeat could expire before a decision at now is written. A newer one may
// exist, so the lock must be read again.
func heartbeatMayExpire(queue []*lock.Waiter, now time.Time, self lock.Replica) bool {
	latest := now.Add(row.MaxLag)
	return slices.ContainsFunc(queue, func(w *lock.Waiter) bool {
		return w.Replica != 0 && w.Replica != self && !latest.Before(w.AliveUntil)
	})
}

// knowsEndings reports whether the command can be decided without reading how its lease ended. A lease that may be granted
// is assumed not to have ended; the swap checks it.
func (u *unit) knowsEndings(r *request, ended map[lock.LeaseRef]lock.Event) bool {
	for i, ref := range r.refs {
		if _, known := ended[ref]; known {
			continue
		}
		c := u.change(r.asked[i])
		if r.traits.Grants {
			c.NotEnded = append(c.NotEnded, ref)
		} else if !hasLease(&c.After, r.traits.Lease) {
			return false
		}
	}
	return true
}

// tellsEndOfSession reports whether the answer tells the end of a lease of a session. The end in the cache may be an
// earlier one, since a heartbeat changes no lock; and at the locks of a set there may be several.
func (u *unit) tellsEndOfSession(r *request) bool {
	return r.traits.TellsEnd && slices.ContainsFunc(u.change(r.names[0]).After.Leases, func(l lock.Lease) bool {
		return l.ID == r.traits.Lease && l.Session != 0
	})
}

// bindSession notes the session of the command, if it has one, for the command's locks. It returns false if the session
// must be read first. The swap checks that the session of what may be granted has not ended.
func (u *unit) bindSession(r *request, in *inputs) bool {
	ref := r.traits.Session
	if ref == 0 {
		return true
	}
	s, found := in.sessions[ref]
	if !u.fresh || s.Undecided(in.now) && found {
		return false
	}
	if !found {
		return true
	}
	if r.traits.Grants && s.Ended == 0 {
		first := u.change(r.names[0])
		first.OpenSessions = append(first.OpenSessions, ref)
	}
	for _, name := range r.names {
		c := u.change(name)
		c.Sessions = maps.Clone(c.Sessions)
		if c.Sessions == nil {
			c.Sessions = make(row.Sessions)
		}
		c.Sessions[ref] = s
	}
	return true
}

// hasLease reports whether the lock has the lease or its waiter. How a revoked lease ended is in its event. An intention is
// of another lock's lease with that ID.
func hasLease(r *lock.Record, id lock.LeaseID) bool {
	return slices.ContainsFunc(r.Leases, func(l lock.Lease) bool { return l.ID == id && !l.Mode.IsIntention() && !l.Revoked() }) ||
		slices.ContainsFunc(r.Queue, func(w *lock.Waiter) bool { return w.Lease.ID == id && !w.Lease.Mode.IsIntention() })
}

func endsLease(events []lock.Event) bool {
	return slices.ContainsFunc(events, func(e lock.Event) bool { return e.Ref != 0 })
}

// answers appends the outcomes for the callers. An outcome keeps the queue only if its command shows it: otherwise a
// batch would hold a copy of the queue for each of its calls.
func (u *unit) answers(all []*row.Outcome, clock reading) []*row.Outcome {
	for i := range u.outcomes {
		o := &u.outcomes[i]
		o.Began = clock.earliest(o.Now)
		r := &u.calls[i].Req
		if o.Queued && r.isAboutLease() {
			o.Place, o.JoinedAt = placeOf(o.Locks[0].Queue, r.traits.Lease)
		}
		if !r.traits.ShowsQueue {
			for j := range o.Locks {
				o.Locks[j].Queue = nil
			}
		}
		all = append(all, o)
	}
	return all
}

// placeOf returns the place of the lease in the queue, and when it was joined. The newest waiter is at the end.
func placeOf(queue []*lock.Waiter, id lock.LeaseID) (place int64, joinedAt time.Time) {
	for _, w := range slices.Backward(queue) {
		if w.Lease.ID == id {
			return w.Place, w.JoinedAt
		}
	}
	return 0, time.Time{}
}
