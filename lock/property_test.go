package lock_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	cmpgo "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// A machine applies random commands to a model. decisionCheck checks each decision by itself, eventChecker the
// events, and checkTime the effects of time; the methods here check the effect of each command.
type machine struct {
	*model
	modes         []lock.Mode
	used          byte                 // the lease_ids up to this one
	calledWaiting []lock.Acquire       // the calls that have waited
	latest        time.Time            // instant of the last check
	graces        map[leaseKey]grace   // of revoked leases, unless skipped
	versions      map[string]lock.Lock // the lock of each version
	opened        []lock.SessionID     // all sessions
}

// TestInvariants runs random commands on three replicas, which die and recover, and moves the clock, also backwards.
func TestInvariants(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string][]lock.Mode{
		"exclusive leases":    {lock.Exclusive},
		"readers and writers": {lock.Exclusive, lock.Shared, lock.Shared},
		"permits":             {lock.Permit},
		"all modes":           {lock.Exclusive, lock.Shared, lock.Permit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { runMachine(t, modes) })
		})
	}
}

func runMachine(t *rapid.T, modes []lock.Mode) {
	m := &machine{model: newModel(t), modes: modes, versions: map[string]lock.Lock{}, graces: map[leaseKey]grace{}}
	for range 2 {
		t.Repeat(map[string]func(*rapid.T){
			"acquire": m.acquire, "wait": m.acquire, "join": m.acquire, "renew": m.renew,
			"release": m.release, "give up": m.release, "revoke": m.revoke, "report": m.report,
			"claim": m.claim, "leave": m.leave, "hang up": m.disconnect, "sweep": m.sweep,
			"open": m.openSession, "heartbeat": m.renewSession, "close": m.endSession,
			"freeze": m.freezeOrThaw, "rule": m.rule, "clock": m.clock, "replica": m.replica, "": m.check,
		})
	}
}

func seconds(t *rapid.T, label string, least, greatest int) time.Duration {
	return time.Duration(rapid.IntRange(least, greatest).Draw(t, label)) * time.Second
}

// metadata draws the metadata of a renewal, or nil.
func metadata(t *rapid.T) json.RawMessage {
	return rapid.SampledFrom(
		[]json.RawMessage{nil, json.RawMessage(`{"at":"a"}`), json.RawMessage(`{"at":"b"}`)},
	).Draw(
		t,
		"metadata",
	)
}

// do applies the command on the replica r, or on a random one that is alive if r is zero.
func (m *machine) do(t *rapid.T, cmd lock.Command, r lock.Replica) lock.Decision {
	if r == 0 {
		alive := slices.DeleteFunc([]lock.Replica{1, 2, 3}, m.isSilent)
		r = rapid.SampledFrom(alive).Draw(t, "replica")
	}
	m.on(r)
	if a, ok := cmd.(lock.Acquire); ok && a.Wait > 0 {
		cmd = m.call(a)
	}
	d := m.model.do(cmd)
	if d.Now.IsZero() { // refused by a rule, before the lock is read
		return d
	}
	if err := cmp.Or(m.checkTime(d), m.checkGraces(d)); err != nil {
		t.Fatalf("after %T%+v: %v", cmd, cmd, err)
	}
	return d
}

// A grace is the grace of a revoked lease, which blocks conflicting leases.
type grace struct {
	mode  lock.Mode
	slots []int
	until time.Time
}

// checkGraces checks that d grants no lease that conflicts with the grace of a revoked lease. A grace that has ended
// stays over even if the clock is set back.
func (m *machine) checkGraces(d lock.Decision) error {
	maps.DeleteFunc(m.graces, func(_ leaseKey, g grace) bool { return !d.Now.Before(g.until) })
	for _, e := range d.Events {
		if e.Kind != lock.Granted {
			continue
		}
		for where, g := range m.graces {
			conflicts := g.mode != e.Mode || g.mode == lock.Exclusive ||
				slices.ContainsFunc(g.slots, func(slot int) bool { return e.Slots.Include(e.Slot, slot) })
			if conflicts {
				return fmt.Errorf(
					"granted slot %d %v before the grace of the revoked token %d is over",
					e.Slot,
					g.until.Sub(d.Now),
					where.token,
				)
			}
		}
	}
	return nil
}

func (m *machine) isSilent(r lock.Replica) bool {
	_, silent := m.silent[r]
	return silent
}

func (m *machine) leaseID(t *rapid.T) lock.LeaseID {
	return id(rapid.ByteRange(1, max(m.used, 1)).Draw(t, "lease"))
}

func (m *machine) acquire(t *rapid.T) {
	a := lock.Acquire{
		Locks: []lock.Member{{Name: name, Mode: rapid.SampledFrom(m.modes).Draw(t, "mode")}}, LeaseID: m.leaseID(t),
		Holder: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "holder"),
		TTL:    seconds(t, "ttl", 1, 20), Grace: seconds(t, "grace", 0, 3), MaxHold: seconds(t, "max hold", 0, 30),
		Wait: seconds(t, "wait", 0, 20), KeepPlace: rapid.Bool().Draw(t, "keep"),
	}
	if rapid.IntRange(0, 3).Draw(t, "again") > 0 {
		m.used++
		a.LeaseID = id(m.used)
	}
	if len(m.opened) > 0 && rapid.IntRange(0, 3).Draw(t, "of a session") == 0 {
		a.SessionID, a.TTL, a.Grace = rapid.SampledFrom(m.opened).Draw(t, "session"), 0, 0
	}
	a.Once = a.Locks[0].Mode == lock.Exclusive && rapid.IntRange(0, 3).Draw(t, "once") == 0
	if a.Locks[0].Mode == lock.Permit {
		a.Locks[0].Capacity = rapid.SampledFrom([]int{3, 3, 3, 4, 0}).Draw(t, "capacity")
		a.Locks[0].Permits = rapid.SampledFrom([]int{0, 1, 1, 2, 2, 3}).Draw(t, "permits")
	}
	a = within(lock.Bounds{MaxWaiters: 5}, a)
	before, _, over := m.lookUp(a.LeaseID)
	d := m.do(t, a, 0)
	lease, place, _ := m.lookUp(a.LeaseID)
	switch {
	case d.Queued:
		a.Attachment, a.Replica = m.calls, m.self
		m.calledWaiting = append(m.calledWaiting, a)
		if place == nil || !place.Attached(d.Now, m.self) || place.Attachment != a.Attachment || a.Wait == 0 {
			t.Fatalf("queued without a place: %+v", place)
		}
	case errors.Is(d.Err, lock.ErrHeld):
		if len(m.record.Leases) == 0 || (place != nil) != a.KeepPlace {
			t.Fatalf("refused although the lock is free, or with a place that was not kept: %+v", place)
		}
	case d.Err == nil:
		if over || lease == nil || lease.Unclaimed() || lease.Token != leaseOf(d).Token || place != nil {
			t.Fatalf("granted a lease that has ended or is not in the record: %+v", leaseOf(d))
		}
		if grants(d, lease.Token) { // and does not deliver one from before the rule
			m.checkRule(t, *lease, true)
		}
		if d.Replayed && (before == nil || before.Unclaimed() || before.Token != lease.Token) {
			t.Fatalf("replayed a lease that did not exist: %+v", leaseOf(d))
		}
	}
}

// lookUp returns the lease and the waiter of the lease_id, and whether the lease has ended.
func (m *machine) lookUp(id lock.LeaseID) (l *lock.Lease, w *lock.Waiter, over bool) {
	for i := range m.record.Leases {
		if m.record.Leases[i].ID == id && !m.record.Leases[i].Revoked() {
			l = &m.record.Leases[i]
		}
	}
	for i := range m.record.Queue {
		if m.record.Queue[i].Lease.ID == id {
			w = m.record.Queue[i]
		}
	}
	over = m.hasEnded(id)
	return l, w, over
}

func (m *machine) renew(t *rapid.T) {
	r := lock.Renew{Locks: []string{name}, LeaseID: m.leaseID(t), TTL: seconds(t, "ttl", 0, 20), Metadata: metadata(t)}
	before, place, over := m.lookUp(r.LeaseID)
	d := m.do(t, r, 0)
	if d.Err != nil {
		return
	}
	if over || before == nil && place == nil {
		t.Fatalf("renewed a lease that had ended or never existed")
	}
	if known := before != nil && !before.Unclaimed(); known &&
		(leaseOf(d).ExpiresAt.Before(before.ExpiresAt) || leaseOf(d).Token != before.Token) {
		t.Fatalf("renewed %+v to %+v", before, leaseOf(d))
	}
	if leaseOf(d).Unclaimed() || leaseOf(d).Attachment != 0 {
		t.Fatalf("renewed, and still unclaimed: %+v", leaseOf(d))
	}
	if r.Metadata != nil && string(leaseOf(d).Metadata) != string(r.Metadata) {
		t.Fatalf("set the metadata %s, and the lease has %s", r.Metadata, leaseOf(d).Metadata)
	}
	m.checkRule(t, leaseOf(d), false)
	if hold := leaseOf(d).ExpiresAt.Sub(leaseOf(d).AcquiredAt); leaseOf(d).MaxHold > 0 && hold > leaseOf(d).MaxHold {
		t.Fatalf("held for %v of at most %v", hold, leaseOf(d).MaxHold)
	}
}

func (m *machine) release(t *rapid.T) {
	r := lock.Release{Locks: []string{name}, LeaseID: m.leaseID(t)}
	if len(m.record.Leases) > 0 && rapid.Bool().Draw(t, "held") {
		r.LeaseID = rapid.SampledFrom(m.record.Leases).Draw(t, "holder").ID
	}
	if rapid.IntRange(0, 3).Draw(t, "closes") == 0 {
		r.Closed.For = seconds(t, "closed", 1, 30)
	}
	d := m.do(t, r, 0)
	if errors.Is(d.Err, lock.ErrInvalid) && r.Closed.For > 0 { // it is not exclusive, or waits
		return
	}
	if l, w, _ := m.lookUp(r.LeaseID); l != nil || w != nil {
		t.Fatalf("released, and the lock still has %+v or %+v", l, w)
	}
}

// report reports a token as stale. It changes no lease and no place.
func (m *machine) report(t *rapid.T) {
	token := lock.Token(rapid.IntRange(1, int(m.token)+1).Draw(t, "token"))
	before := m.do(t, lock.Sweep{Locks: []string{name}}, 0).Locks[0]
	d := m.do(t, lock.ReportStale{Name: name, Token: token}, 0)
	after := d.Locks[0]
	if d.Err == nil {
		before.Revision, before.ChangedAt = before.Revision+1, d.Now
	}
	if diff := cmpgo.Diff(before, after); diff != "" {
		t.Fatalf("a report of token %d changed the lock (-before +after):\n%s", token, diff)
	}
}

func (m *machine) revoke(t *rapid.T) {
	newest := int64(m.token)
	r := lock.Revoke{
		Name:   name,
		Token:  lock.Token(rapid.Int64Range(max(newest-2, 1), newest+1).Draw(t, "token")),
		Reason: "r",
	}
	if slot := rapid.IntRange(-1, 3).Draw(t, "slot"); slot >= 0 {
		r.Slot = &slot
	}
	r.SkipGrace = rapid.Bool().Draw(t, "skip grace")
	selected := func(l lock.Lease) bool {
		return l.Token == r.Token && (r.Slot == nil || l.Slots.Include(l.Slot, *r.Slot))
	}
	before := slices.Clone(m.record.Leases)
	for _, l := range before {
		if r.SkipGrace && selected(l) {
			delete(m.graces, leaseKey{l.Slot, l.Token})
		}
	}
	d := m.do(t, r, 0)
	if d.Err != nil {
		return
	}
	for _, l := range m.record.Leases {
		if selected(l) && (!l.Revoked() || r.SkipGrace) {
			t.Fatalf("revoked, and the lock still has %+v", l)
		}
	}
	for _, l := range before {
		if !selected(l) || l.Revoked() || l.Unclaimed() || r.SkipGrace || !d.Now.Before(l.EndsAt()) {
			continue
		}
		end := l.ExpiresAt
		if d.Now.Before(end) {
			end = d.Now
		}
		m.graces[leaseKey{l.Slot, l.Token}] = grace{l.Mode, l.Slots.All(l.Slot), end.Add(l.Grace)}
	}
}

// freezeOrThaw freezes the lock, or another one.
func (m *machine) freezeOrThaw(t *rapid.T) {
	if m.policy.Freezes != nil {
		m.policy.Freezes = nil
		m.do(t, sweep, 0)
		return
	}
	m.freeze(rapid.SampledFrom([]lock.Scope{name, "jobs:", "other:"}).Draw(t, "scope"), seconds(t, "for", 0, 20))
}

// rule sets a rule for the lock or for another one, or removes it. The next decision lets in those whom it has room for.
func (m *machine) rule(t *rapid.T) {
	if m.policy.Rules = nil; rapid.IntRange(0, 3).Draw(t, "a rule") > 0 {
		s := rapid.SampledFrom([]lock.Scope{name, "jobs:", "jobs:", "other:"}).Draw(t, "scope")
		m.policy.Rules = map[lock.Scope]lock.Rule{s: {
			Scope: s, Capacity: rapid.IntRange(0, 5).Draw(t, "capacity"), MaxTTL: seconds(t, "max ttl", 0, 20),
			MaxHold: seconds(t, "max hold", 0, 30), MinGrace: seconds(t, "min grace", 0, 2),
		}}
	}
	m.do(t, sweep, 0)
}

// grants reports whether d grants the lease with this token.
func grants(d lock.Decision, token lock.Token) bool {
	return slices.ContainsFunc(d.Events, func(e lock.Event) bool { return e.Kind == lock.Granted && e.Token == token })
}

// checkRule checks a lease that was granted now, or before the rule and now renewed, against the rule.
func (m *machine) checkRule(t *rapid.T, l lock.Lease, granted bool) {
	r := m.policy.RuleOf(name)
	if r == nil || l.Session != 0 {
		return
	}
	if r.MaxTTL > 0 && l.TTL > r.MaxTTL || granted && l.Grace < r.MinGrace ||
		granted && r.MaxHold > 0 && l.ExpiresAt.Sub(l.AcquiredAt) > r.MaxHold {
		t.Fatalf("%+v is outside of the rule %+v", l, r)
	}
}

func (m *machine) sweep(t *rapid.T) { m.do(t, sweep, 0) }

func (m *machine) clock(t *rapid.T) {
	m.advance(time.Duration(rapid.IntRange(-8, 16).Draw(t, "step")) * 500 * time.Millisecond)
}

// replica silences or revives a random replica. At least one stays alive.
func (m *machine) replica(t *rapid.T) {
	r := lock.Replica(rapid.Int64Range(1, 3).Draw(t, "replica"))
	switch {
	case m.isSilent(r):
		m.unsilence(r)
	case len(m.silent) < 2:
		m.silence(r)
	}
}
