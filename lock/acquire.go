package lock

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Acquire acquires the Locks, all or none. If it conflicts with a lease or an earlier waiter, it waits in the queue for
// up to Wait, and is refused with ErrHeld after that.
//
// An Acquire with the same LeaseID is the same request: it returns the lease that the first one was granted, with its
// remaining time, or continues to wait at the same place. Another LeaseID is another request, even for the same
// Holder: locks are not re-entrant.
type Acquire struct {
	Locks    []Member        // 1 to MaxSetSize; see One
	LeaseID  LeaseID         // zero: the service generates one, and the request cannot be retried
	Holder   string          // free text for people: 1 to MaxHolderLength characters
	TTL      time.Duration   // from the grant, within the Bounds; zero: their default
	Grace    time.Duration   // within the Bounds
	MaxHold  time.Duration   // from the Bounds' MinTTL to the constant MaxHold; zero: unlimited
	Metadata json.RawMessage // a JSON object of up to MaxMetadataSize bytes, or nil
	// Stays: the lease does not end by itself; when its grace is over it is suspect. It is refused if a fail-over may lose
	// the lease, see [View].LeasesMayBeLost, and cannot be combined with a SessionID.
	Stays bool
	// SessionID is the session that keeps the lease alive: the lease ends with it, so TTL and Grace must be zero.
	// Zero: the lease belongs to no session.
	SessionID SessionID

	// Task is the thread of work that makes the call, so that deadlocks are found. Empty: the session, if there is one;
	// otherwise it is not known. See Thread.
	Task TaskID
	// Wait is how long to wait, up to MaxWait. Zero means not to wait. The place is kept for so long, and for
	// PlaceRetention at least, if the call ends early because its client or its replica is gone.
	Wait time.Duration
	// KeepPlace keeps the place in the queue for PlaceRetention after the Wait is over, too, so that the next call with
	// the LeaseID resumes there. It requires a LeaseID.
	KeepPlace bool
	// Once: the call is for work that needs to be done only once. It is refused with ErrAlreadyDone as soon as the lock is
	// closed by a Release, also while it waits. Without Once a call that waits does so until the lock opens again. It
	// requires a single lock, in mode Exclusive.
	Once bool

	// Services set these before Apply. They are zero in a request.
	TaskScope    string     // the id of the API key: tasks of different keys are different
	Attachment   Attachment // the waiting call
	Replica      Replica    // the replica that serves it
	GeneratedID  bool       // LeaseID was generated for this call: no lease has ever had it
	LimitReached bool       // the service's limit on waiting calls is reached: the call may be granted, but not join a queue
	SessionFull  bool       // the session has reached its limit: a can only find a lease or place that it has
	Requested    []string   // the names in the request, if Locks also has ancestors of them. Set by In

	KeyFull *Rule // the MaxLeases of this rule is reached: a can only find a lease or place that it has
	outside error // why it is outside of the rules: it can only find a lease or place from before them. Set by In

	leftOut          bool      // TTL: it is the default of the Bounds
	minGrace         bool      // Grace: it is that of a rule
	counted          bool      // the lease counts for the MaxLeases of a rule
	maxWaiters       int       // of the lock, from the Bounds
	sessionExpiresAt time.Time // from the View
}

// Resolve returns a with its defaults filled in, or an ErrInvalid error that names the invalid field.
func (a Acquire) Resolve(b Bounds) (Acquire, error) {
	locks, err := resolveMembers(a.Locks)
	if err != nil {
		return a, err
	}
	a.Locks, a.maxWaiters = locks, b.MaxWaiters
	times := a.resolveTimes(b)
	return a, cmp.Or(
		checkText("holder", a.Holder, 1, MaxHolderLength),
		a.checkKeepPlace(),
		a.checkOnce(),
		times,
		CheckDuration("wait_ms", a.Wait, 0, MaxWait),
		checkMaxHold(a.MaxHold, b.MinTTL),
		checkMetadata(a.Metadata),
		checkTaskID(a.Task),
	)
}

// resolveTimes sets the TTL, unless the lease is one of a session, which has none of its own.
func (a *Acquire) resolveTimes(b Bounds) error {
	switch {
	case a.SessionID == SessionID{}:
		a.leftOut = a.TTL == 0
		a.TTL = cmp.Or(a.TTL, b.DefaultTTL)
		return cmp.Or(CheckDuration("ttl_ms", a.TTL, b.MinTTL, b.MaxTTL), CheckDuration("grace_ms", a.Grace, 0, b.MaxGrace))
	case a.TTL != 0:
		return Invalid("ttl_ms", "cannot be combined with session_id: the lease ends with the session; leave it out")
	case a.Stays:
		return Invalid("on_expiry", "cannot be hold with session_id: the leases of a session end with it, all at once; leave out one of the two")
	case a.Grace != 0:
		return Invalid("grace_ms", "cannot be combined with session_id: the grace is that of the session; leave it out")
	}
	return nil
}

func (a Acquire) checkKeepPlace() error {
	if a.KeepPlace && a.LeaseID == (LeaseID{}) {
		return Invalid("keep_place", "requires a lease_id, by which the next call finds the place")
	}
	return nil
}

func (a Acquire) checkOnce() error {
	switch {
	case !a.Once:
		return nil
	case len(a.Locks) > 1:
		return Invalid("once", "is only valid for one lock; acquire the locks separately")
	case a.Locks[0].Mode != Exclusive:
		return Invalid("once", "is only valid with mode exclusive; leave it out")
	}
	return nil
}

func checkMaxHold(d, minTTL time.Duration) error {
	if d == 0 {
		return nil
	}
	return CheckDuration("max_hold_ms", d, minTTL, MaxHold)
}

// Names returns the names of the Locks.
func (a Acquire) Names() []string {
	names := make([]string, len(a.Locks))
	for i, m := range a.Locks {
		names[i] = m.Name
	}
	return names
}

// Traits returns those of a call that may be granted leases, and may wait for them.
func (a Acquire) Traits() Traits {
	t := Traits{Lease: a.LeaseID, Session: a.SessionID.Ref(), Grants: true, Length: a.TTL + a.Grace, NewID: a.GeneratedID}
	if a.Stays {
		t.Length = 0
	}
	t.NeedsRule = slices.ContainsFunc(a.Locks, lacksCapacity)
	if a.Wait > 0 {
		t.Queue, t.Wait = Joins, a.Wait
	}
	return t
}

// In returns a within the rules, with an intention at each ancestor of its locks. It must be resolved.
func (a Acquire) In(p *Policy) (Command, error) {
	a = a.within(p)
	t := p.trees()
	if len(t) == 0 {
		return a, nil
	}
	modes, asked := make(map[string]Mode), a.Names()
	for _, m := range a.Locks {
		path := t.path(m.Name)
		if err := a.checkInTree(m, path); err != nil {
			return a, err
		}
		for _, above := range path[:max(len(path)-1, 0)] {
			modes[above] = max(modes[above], intentionFor(m.Mode))
		}
	}
	if len(modes) == 0 {
		return a, nil
	}
	members := slices.Clone(a.Locks)
	for _, m := range members {
		if intention := modes[m.Name]; intention == IntentionExclusive && m.Mode == Shared {
			return a, Invalid("locks", "include %s, shared, and an exclusive lock below it; acquire %[1]s exclusively instead", m.Name)
		}
		delete(modes, m.Name) // the lease itself conflicts with all that the intention does
	}
	for name, mode := range modes {
		members = append(members, Member{Name: name, Mode: mode})
	}
	if len(members) > MaxTreePaths {
		return a, Invalid("locks", "have %d locks with their ancestors in trees; give fewer, for at most %d", len(members), MaxTreePaths)
	}
	slices.SortFunc(members, func(m, o Member) int { return strings.Compare(m.Name, o.Name) })
	a.Locks, a.Requested = members, asked
	return a, nil
}

// within returns a within the rules of its locks, or with the refusal if it is outside.
func (a Acquire) within(p *Policy) Acquire {
	a.outside = nil
	if p == nil || len(p.Rules) == 0 {
		a.outside = a.checkCapacities()
		return a
	}
	a.Locks = slices.Clone(a.Locks)
	for i := range a.Locks {
		m := &a.Locks[i]
		r := p.RuleOf(m.Name)
		if r == nil {
			continue
		}
		a.counted = a.counted || r.MaxLeases > 0
		if r.MaxHold > 0 && (a.MaxHold == 0 || a.MaxHold > r.MaxHold) {
			a.MaxHold = r.MaxHold
		}
		if a.SessionID == (SessionID{}) {
			if a.leftOut && r.MaxTTL > 0 {
				a.TTL = min(a.TTL, r.MaxTTL)
			}
			if a.Grace == 0 || a.minGrace {
				a.Grace, a.minGrace = max(a.Grace, r.MinGrace), true
			}
			a.outside = cmp.Or(a.outside, r.checkTimes(a.TTL, a.Grace))
		}
		a.outside = cmp.Or(a.outside, r.checkPermits(m))
	}
	a.outside = cmp.Or(a.outside, a.checkCapacities())
	return a
}

// IsOutside reports whether a is outside of the rules, so that it can only find a lease or a place from before them.
func (a Acquire) IsOutside() bool { return a.outside != nil }

// lacksCapacity reports whether m asks for permits, and leaves their number to a rule.
func lacksCapacity(m Member) bool { return m.Mode == Permit && m.Capacity == 0 }

// checkCapacities returns the refusal of a request for permits whose number is not known.
func (a Acquire) checkCapacities() error {
	for _, m := range a.Locks {
		if lacksCapacity(m) {
			return errNoCapacity(a.Locks, m)
		}
	}
	return nil
}

// checkInTree returns an error if the tree does not allow the member. path is the member's path in its tree, nil
// outside of trees.
func (a Acquire) checkInTree(m Member, path []string) error {
	field := func(name string) string {
		if len(a.Locks) > 1 {
			return "locks"
		}
		return name
	}
	switch {
	case path != nil && m.Mode == Permit:
		return Invalid(field("mode"), "is permit for %s, which is in the tree %s; there, use exclusive or shared", m.Name, path[0])
	case len(path) > MaxTreeLevels:
		return Invalid(field("name"), "has %d levels in the tree %s; at most %d are allowed", len(path), path[0], MaxTreeLevels)
	}
	return nil
}

// Thread returns the thread of work of the call, by which deadlocks are found: its Task, or the task of its session if
// it has none, or nothing. It begins with the TaskScope, so that the tasks of one API key are not those of another one:
// no TaskID of a client contains a slash.
func (a Acquire) Thread() TaskID {
	t := a.Task
	if t == "" && a.SessionID != (SessionID{}) {
		t = a.SessionID.Ref().Task()
	}
	if t == "" || a.TaskScope == "" {
		return t
	}
	return TaskID(a.TaskScope) + "/" + t
}

// Apply grants the lease, or finds the lease or the place of an earlier call with the same LeaseID. A LeaseID whose
// lease has ended is never granted again.
func (a Acquire) Apply(v View) Decision {
	d := begin(v, a.Requested)
	d.applyTime()
	if err := d.checkSession(a.SessionID); err != nil {
		return d.finish(err)
	}
	if s, known := d.session(a.SessionID); known {
		a.TTL, a.Grace, a.sessionExpiresAt = s.TTL, s.Grace, s.ExpiresAt
	}
	if out, decided := d.findEarlier(a); decided {
		return out
	}
	if a.SessionFull {
		return d.finish(errSessionFull())
	}
	if a.Stays && d.view.LeasesMayBeLost {
		return d.finish(errMayBeLost())
	}
	if err := d.checkRules(a); err != nil {
		return d.finish(err)
	}
	if err := d.checkCapacity(a); err != nil {
		return d.finish(err)
	}
	if d.canGrant(a) {
		return d.finishWithLeases(d.grantTo(a), false)
	}
	return d.enqueue(a)
}

// findEarlier decides a if an earlier call with the same LeaseID was granted the locks, or waits for them.
func (d *decider) findEarlier(a Acquire) (_ Decision, decided bool) {
	leases, all := d.leases(a.LeaseID)
	switch {
	case len(leases) > 0 && !d.match(a):
		return d.finish(d.errMismatch(a)), true
	case all:
		first := d.locks[0].isUndelivered(leases[0])
		return d.finishWithLeases(d.claim(leases, a.Attachment), !first), true
	case len(leases) > 0:
		return d.finish(errLost(d.locks, a.LeaseID)), true
	}
	waiters, all := d.waiters(a.LeaseID)
	switch {
	case len(waiters) > 0 && !d.match(a):
		return d.finish(d.errMismatch(a)), true
	case all && a.Once && d.isDone():
		d.removeWaiters(a.LeaseID, reasonAlreadyDone)
		d.promote()
		return d.finish(errNotGranted(d.locks, a.Locks, a.LeaseID)), true
	case all:
		return d.resumeWait(a, waiters), true
	}
	if d.removeWaiters(a.LeaseID, reasonPlaceLapsed) > 0 { // of a set that has lost the other places
		d.promote()
	}
	if d.hasEnded(a.LeaseID) {
		return d.finish(errLost(d.locks, a.LeaseID)), true
	}
	return Decision{}, false
}

// errMismatch returns the refusal of a if a lease or a waiter with its LeaseID is that of another request. In a tree, the
// lease of a may have ended before a client used its ID for that one.
func (d *decider) errMismatch(a Acquire) error {
	if d.hasEnded(a.LeaseID) {
		return errLost(d.locks, a.LeaseID)
	}
	return errInUse()
}

// match reports whether each lease and waiter with the LeaseID of a is one that a has asked for.
func (d *decider) match(a Acquire) bool {
	set := d.set()
	for i, m := range a.Locks {
		s := d.locks[i]
		if l, ok := s.lease(a.LeaseID); ok {
			if !a.matches(l, m, set) || !s.hasCapacity(m, s.record.Capacity) || m.permits() != l.Permits() {
				return false
			}
		} else if w, waits := s.waiter(a.LeaseID); waits &&
			(!a.matches(w.Lease, m, set) || !s.hasCapacity(m, w.Capacity) || m.permits() != w.Member().permits()) {
			return false
		}
	}
	return true
}

// hasCapacity reports whether m asks for permits of this capacity, or has left it to a rule, or a rule has it since.
func (s *lockState) hasCapacity(m Member, capacity int) bool {
	return m.Capacity == capacity || m.Capacity == 0 || m.Mode == Permit && s.rule != nil && s.rule.Capacity > 0
}

// matches reports whether l has the holder, the mode, the session and the set of a, which asks for m.
func (a Acquire) matches(l Lease, m Member, set []string) bool {
	return l.Holder == a.Holder && l.Mode == m.Mode && l.Stays == a.Stays && l.Session == a.SessionID.Ref() && slices.Equal(l.Set, set)
}

// checkRules returns the refusal of a call outside of the rules, which is not one from before them.
func (d *decider) checkRules(a Acquire) error {
	switch {
	case a.outside != nil:
		return a.outside
	case a.KeyFull != nil:
		return errKeyFull(a.KeyFull)
	}
	for i := range a.Locks {
		if r := d.locks[i].rule; r != nil && a.SessionID != (SessionID{}) && !d.locks[i].above {
			if err := r.checkSession(a.SessionID.Ref(), a.TTL, a.Grace); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCapacity returns the refusal of permits with another capacity than that in use.
func (d *decider) checkCapacity(a Acquire) error {
	for i, m := range a.Locks {
		c := d.locks[i].capacityInUse()
		if m.Mode != Permit || c == 0 || c == m.Capacity {
			continue
		}
		return errCapacity(d.locks, m, c)
	}
	return nil
}

// canGrant reports whether a can be granted at once: no attached waiter is ahead, and no lease conflicts.
func (d *decider) canGrant(a Acquire) bool {
	for i, s := range d.locks {
		if !s.fits(a.Locks[i], a.LeaseID) {
			return false
		}
	}
	return true
}

// grantTo grants the locks to a, which fits.
func (d *decider) grantTo(a Acquire) []Lease {
	modes, leases := make([]Mode, len(d.locks)), make([]Lease, len(d.locks))
	for i, m := range a.Locks {
		modes[i] = m.Mode
	}
	set := d.set()
	d.grantEach(d.locks, modes, func(i int, token Token) Token {
		want := a.newLease(a.Locks[i], set, d.view.Caller)
		want.Token = token
		leases[i] = d.locks[i].grant(want, a.Locks[i], 0, d.view.Caller)
		return leases[i].Token
	})
	return leases
}

// newLease returns the lease of the lock m that the caller has requested.
func (a Acquire) newLease(m Member, set []string, by Caller) Lease {
	key := ""
	if a.counted {
		key = by.Name
	}
	return Lease{
		ID: a.LeaseID, Key: key, Name: m.Name, Mode: m.Mode, Holder: a.Holder, TTL: a.TTL, Grace: a.Grace,
		MaxHold: a.MaxHold, Metadata: a.Metadata, Stays: a.Stays, Attachment: a.Attachment, Session: a.SessionID.Ref(),
		ExpiresAt: a.sessionExpiresAt, Set: set, Below: a.Requested, Task: a.Thread(),
	}
}

// enqueue appends a to the queues of its locks, if it waits or keeps its place. Otherwise it refuses.
func (d *decider) enqueue(a Acquire) Decision {
	if a.Wait == 0 && !a.KeepPlace || a.Once && d.isDone() {
		return d.finish(errNotGranted(d.locks, a.Locks, a.LeaseID))
	}
	if a.LimitReached {
		return d.finish(errLimitReached(errNotGranted(d.locks, a.Locks, a.LeaseID)))
	}
	for _, s := range d.locks {
		if n, full := s.isQueueFull(a.maxWaiters); full {
			return d.finish(errQueueFull(d.locks, s, n))
		}
	}
	set, waiters := d.set(), make([]Waiter, len(d.locks))
	for i, m := range a.Locks {
		s := d.locks[i]
		l := a.newLease(m, set, d.view.Caller)
		s.emit(Event{Kind: Queued, Place: s.record.Revision + 1, Caller: d.view.Caller}, l)
		w := Waiter{Place: s.record.Revision, Lease: l, Capacity: m.Capacity, Permits: m.Permits, Once: a.Once, JoinedAt: s.now}
		if w.Caller = d.view.Caller; a.Wait > 0 {
			w = a.attachTo(w, s.now)
		}
		queue := make([]*Waiter, len(s.record.Queue)+1)
		queue[copy(queue, s.record.Queue)] = &w
		s.record.Queue, waiters[i] = queue, w
	}
	if err := d.waitsForItself(a); err != nil {
		d.removeWaiters(a.LeaseID, reasonDeadlock)
		d.promote()
		return d.finish(err)
	}
	return d.waitOrEnd(a, waiters)
}

// resumeWait continues a wait at the places that an earlier call with the same LeaseID took.
func (d *decider) resumeWait(a Acquire, waiters []Waiter) Decision {
	for i, s := range d.locks {
		waiters[i] = a.attachTo(waiters[i], s.now)
		waiters[i].Caller = d.view.Caller
	}
	if leases, ok := d.promoteNow(waiters); ok {
		return d.finishWithLeases(d.claim(leases, a.Attachment), false)
	}
	if a.Wait > 0 {
		for i, s := range d.locks {
			s.replaceWaiter(waiters[i])
		}
	}
	return d.waitOrEnd(a, waiters)
}

// attachTo returns the waiter with the call of a.
func (a Acquire) attachTo(w Waiter, now time.Time) Waiter {
	w.Attachment, w.Replica, w.Lease.Task, w.Once = a.Attachment, a.Replica, a.Thread(), a.Once
	w.WaitUntil, w.AliveUntil = now.Add(a.Wait), now.Add(ReplicaTTL)
	w.KeptUntil = w.WaitUntil.Add(PlaceRetention)
	return w
}

// waitOrEnd returns the decision for the call of a, whose places are those of the waiters: it waits, or ends its wait
// at once.
func (d *decider) waitOrEnd(a Acquire, waiters []Waiter) Decision {
	if a.Wait == 0 {
		return d.finish(d.endWait(waiters, a.KeepPlace))
	}
	return d.finishWaiting()
}

// waitsForItself returns the refusal of a call that has just joined, if it waits for a lease of its own task. Deadlocks
// of several tasks are found later, see [BreakDeadlock].
func (d *decider) waitsForItself(a Acquire) error {
	thread := a.Thread()
	if thread == "" || a.Wait == 0 {
		return nil
	}
	own := func(l Lease) bool { return l.Task.Includes(thread) }
	if !slices.ContainsFunc(d.locks, func(s *lockState) bool { return slices.ContainsFunc(s.record.Leases, own) }) {
		return nil
	}
	if found := d.deadlocksOf(a.LeaseID); len(found) > 0 {
		return DeadlockError(found[0].Cycle)
	}
	return nil
}
