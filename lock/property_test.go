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

	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

// A machine is a world to which random things happen. What each decision must keep
// by itself is in deed, what the events must tell in story, and what time must do
// afterwards in settled; here is what each command must do.
type machine struct {
	*model
	modes         []lock.Mode
	used          byte                 // the lease_ids up to this one
	calledWaiting []lock.Acquire       // the calls that ever waited
	latest        time.Time            // that anybody looked
	graces        map[leaseKey]grace   // of revoked leases, unless they were skipped
	versions      map[string]lock.Lock // what each stood for
}

// TestInvariants drives random commands from three replicas, which fall silent
// and are heard of again, and steps of the clock, also backwards, against what the
// lock promises.
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
			rapid.Check(t, func(rt *rapid.T) {
				m := &machine{model: newModel(rt), modes: modes, versions: map[string]lock.Lock{}, graces: map[leaseKey]grace{}}
				for range 2 {
					rt.Repeat(map[string]func(*rapid.T){
						"acquire": m.acquire, "wait": m.acquire, "join": m.acquire, "renew": m.renew,
						"release": m.release, "give up": m.release, "revoke": m.revoke,
						"claim": m.claim, "leave": m.leave, "hang up": m.disconnect, "sweep": m.sweep,
						"clock": m.clock, "replica": m.replica, "": m.check,
					})
				}
			})
		})
	}
}

func seconds(t *rapid.T, label string, least, greatest int) time.Duration {
	return time.Duration(rapid.IntRange(least, greatest).Draw(t, label)) * time.Second
}

// metadata is what a renewal proclaims, or nil for nothing.
func metadata(t *rapid.T) json.RawMessage {
	return rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"at":"a"}`), json.RawMessage(`{"at":"b"}`)}).Draw(t, "metadata")
}

// do is what the world does, by any replica that lives unless r names one.
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
	if err := cmp.Or(m.checkTime(d), m.checkGraces(d)); err != nil {
		t.Fatalf("after %T%+v: %v", cmd, cmd, err)
	}
	return d
}

// A grace is that of a revoked lease: until when it blocks leases of other modes, and
// those of its own unless they are shared.
type grace struct {
	mode  lock.Mode
	until time.Time
}

// checkGraces checks that d grants nothing that conflicts with the grace of a revoked lease.
// A grace that was over once stays over, although the clock is set back.
func (m *machine) checkGraces(d lock.Decision) error {
	maps.DeleteFunc(m.graces, func(_ leaseKey, g grace) bool { return !d.Now.Before(g.until) })
	for _, e := range d.Events {
		if e.Kind != lock.Granted {
			continue
		}
		for where, g := range m.graces {
			conflicts := g.mode != e.Mode || g.mode == lock.Exclusive || where.slot == e.Slot
			if conflicts {
				return fmt.Errorf("granted slot %d %v before the grace of the revoked token %d is over", e.Slot, g.until.Sub(d.Now), where.token)
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
		Name: name, LeaseID: m.leaseID(t), Mode: rapid.SampledFrom(m.modes).Draw(t, "mode"),
		Holder: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "holder"),
		TTL:    seconds(t, "ttl", 1, 20), Grace: seconds(t, "grace", 0, 3), MaxHold: seconds(t, "max hold", 0, 30),
		Wait: seconds(t, "wait", 0, 20), KeepPlace: rapid.Bool().Draw(t, "keep"),
	}
	if rapid.IntRange(0, 3).Draw(t, "again") > 0 {
		m.used++
		a.LeaseID = id(m.used)
	}
	if a.Mode == lock.Permit {
		a.Capacity = rapid.SampledFrom([]int{2, 2, 2, 3}).Draw(t, "capacity")
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
			t.Fatalf("waits without a place: %+v", place)
		}
	case errors.Is(d.Err, lock.ErrHeld):
		if len(m.record.Leases) == 0 || (place != nil) != a.KeepPlace {
			t.Fatalf("refused although nobody has the lock, or with a place that nobody asked for: %+v", place)
		}
	case d.Err == nil:
		if over || lease == nil || lease.Unclaimed() || lease.Token != d.Grant.Token || place != nil {
			t.Fatalf("granted what is over, or is not there: %+v", d.Grant)
		}
		if d.Replay && (before == nil || before.Unclaimed() || before.Token != lease.Token) {
			t.Fatalf("replayed what was not there: %+v", d.Grant)
		}
	}
}

// lookUp returns the lease and the place of the lease_id, and whether it has ended.
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
	r := lock.Renew{Name: name, LeaseID: m.leaseID(t), TTL: seconds(t, "ttl", 0, 20), Metadata: metadata(t)}
	before, place, over := m.lookUp(r.LeaseID)
	d := m.do(t, r, 0)
	if d.Err != nil {
		return
	}
	if over || before == nil && place == nil {
		t.Fatalf("renewed a lease that was over, or never was")
	}
	if known := before != nil && !before.Unclaimed(); known && (d.Grant.ExpiresAt.Before(before.ExpiresAt) || d.Grant.Token != before.Token) {
		t.Fatalf("renewed %+v to %+v", before, d.Grant)
	}
	if d.Grant.Unclaimed() || d.Grant.Attachment != 0 {
		t.Fatalf("renewed, and nobody knows of it: %+v", d.Grant)
	}
	if r.Metadata != nil && string(d.Grant.Metadata) != string(r.Metadata) {
		t.Fatalf("proclaimed %s, and the lease says %s", r.Metadata, d.Grant.Metadata)
	}
	if hold := d.Grant.ExpiresAt.Sub(d.Grant.AcquiredAt); d.Grant.MaxHold > 0 && hold > d.Grant.MaxHold {
		t.Fatalf("held for %v of at most %v", hold, d.Grant.MaxHold)
	}
}

func (m *machine) release(t *rapid.T) {
	r := lock.Release{Name: name, LeaseID: m.leaseID(t)}
	if len(m.record.Leases) > 0 && rapid.Bool().Draw(t, "held") {
		r.LeaseID = rapid.SampledFrom(m.record.Leases).Draw(t, "whose").ID
	}
	m.do(t, r, 0)
	if l, w, _ := m.lookUp(r.LeaseID); l != nil || w != nil {
		t.Fatalf("released, and there is still %+v or %+v", l, w)
	}
}

func (m *machine) revoke(t *rapid.T) {
	newest := int64(m.token)
	r := lock.Revoke{Name: name, Token: lock.Token(rapid.Int64Range(max(newest-2, 1), newest+1).Draw(t, "token")), Reason: "r"}
	if slot := rapid.IntRange(-1, 3).Draw(t, "slot"); slot >= 0 {
		r.Slot = &slot
	}
	r.SkipGrace = rapid.Bool().Draw(t, "at once")
	meant := func(l lock.Lease) bool { return l.Token == r.Token && (r.Slot == nil || *r.Slot == l.Slot) }
	before := slices.Clone(m.record.Leases)
	for _, l := range before {
		if r.SkipGrace && meant(l) {
			delete(m.graces, leaseKey{l.Slot, l.Token})
		}
	}
	d := m.do(t, r, 0)
	if d.Err != nil {
		return
	}
	for _, l := range m.record.Leases {
		if meant(l) && (!l.Revoked() || r.SkipGrace) {
			t.Fatalf("revoked, and there is still %+v", l)
		}
	}
	for _, l := range before {
		if !meant(l) || l.Revoked() || l.Unclaimed() || r.SkipGrace || !d.Now.Before(l.EndsAt()) {
			continue
		}
		end := l.ExpiresAt
		if d.Now.Before(end) {
			end = d.Now
		}
		m.graces[leaseKey{l.Slot, l.Token}] = grace{l.Mode, end.Add(l.Grace)}
	}
}

func (m *machine) sweep(t *rapid.T) { m.do(t, sweep, 0) }

func (m *machine) clock(t *rapid.T) {
	m.advance(time.Duration(rapid.IntRange(-8, 16).Draw(t, "step")) * 500 * time.Millisecond)
}

// replica has one fall silent, or be heard of again; one at least always is.
func (m *machine) replica(t *rapid.T) {
	r := lock.Replica(rapid.Int64Range(1, 3).Draw(t, "replica"))
	switch {
	case m.isSilent(r):
		m.unsilence(r)
	case len(m.silent) < 2:
		m.silence(r)
	}
}
