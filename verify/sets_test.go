package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// aSet asks for two locks together, of the first as one of several readers.
func aSet() lock.Acquire {
	return lock.Acquire{Locks: []lock.Member{{Name: otherSetLock}, {Name: setLock, Mode: lock.Shared}}}
}

var setNames = []string{setLock, otherSetLock}

// useSets lets ida hold two locks together, then jon, behind whom kim waits, and revokes the leases of kim. At last
// those of lea expire.
func (c *harness) useSets() {
	c.t.Helper()
	c.acquire("ida", nil, aSet())
	c.acquire("jon", lock.ErrHeld, aSet())
	_, err := c.client("ida").Renew(c.t.Context(), lock.Renew{Locks: setNames, LeaseID: c.id("ida")})
	c.want(nil, err)
	_, err = c.client("ida").Renew(c.t.Context(), lock.Renew{Locks: []string{setLock}, LeaseID: c.id("ida")})
	c.want(lock.ErrLeaseInSet, err)
	c.waitWhile("jon", aSet(), func() {
		c.waitWhile("kim", aSet(), func() {
			c.releaseSet("ida")
			c.read(setLock)
			c.releaseSet("jon")
		})
	})
	c.verify("kim")
	c.revoke("kim")
	a := aSet()
	a.TTL = time.Second
	c.acquire("lea", nil, a)
	c.read(otherSetLock)
	time.Sleep(2 * time.Second)
	_, err = c.client("lea").Renew(c.t.Context(), lock.Renew{Locks: setNames, LeaseID: c.id("lea")})
	c.want(lock.ErrLeaseLost, err)
	c.poll()
}

func (c *harness) releaseSet(holder string) {
	c.t.Helper()
	c.want(nil, c.client(holder).Release(c.t.Context(), lock.Release{Locks: setNames, LeaseID: c.id(holder)}))
}

// member changes the lease of one lock in the holder's nth answer with that verb.
func (s editable) member(verb verify.Verb, holder string, nth, i int, change func(*lock.Lease)) {
	s.t.Helper()
	s.grant(verb, holder, nth, func(g *lock.Grant) {
		members := append([]lock.Lease(nil), g.Leases...)
		change(&members[i])
		g.Leases = members
	})
}

// eventOn returns the first event of that kind about the holder and the lock.
func (s editable) eventOn(name string, kind lock.Kind, holder string) *lock.Event {
	s.t.Helper()
	for i := range s.Events {
		if e := &s.Events[i]; e.Name == name && e.Kind == kind && e.Holder == holder {
			return e
		}
	}
	s.t.Fatalf("no such event of %q was recorded", holder)
	return nil
}

func on(name string, these func(lock.Event) bool) func(lock.Event) bool {
	return func(e lock.Event) bool { return e.Name == name && these(e) }
}

func TestSetsThatAreNotOneAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"one of two locks is granted": {bySets, func(s editable) {
			s.removeEvents(on(otherSetLock, of("ida")))
		}, `A set of "ida" was granted in part: play:set with token`},
		"the locks are granted one after the other": {bySets, func(s editable) {
			e := s.eventOn(otherSetLock, lock.Granted, "ida")
			e.At = e.At.Add(2 * time.Second)
		}, `A set of "ida" was granted in part: play:set with token`},
		"the leases have two tokens": {bySets, func(s editable) {
			for i := range s.Events {
				if e := &s.Events[i]; e.Name == otherSetLock && e.Holder == "lea" && e.Token != 0 {
					e.Token++
				}
			}
			s.member(verify.Acquire, "lea", 0, 1, func(l *lock.Lease) { l.Token++ })
		}, `The leases of a set of "lea" have the tokens`},
		"one lease is released": {bySets, func(s editable) {
			s.removeEvents(on(otherSetLock, is(lock.Released, "jon")))
		}, "play:set was released at"},
		"one lease is released before the other": {bySets, func(s editable) {
			e := s.eventOn(setLock, lock.Released, "ida")
			e.At = e.At.Add(-2 * time.Second)
		}, "did not end together"},
		"one lease is revoked, and one released": {bySets, func(s editable) {
			s.eventOn(setLock, lock.Revoked, "kim").Kind = lock.Released
		}, "did not end together"},
		"a lease is seen after the other expired": {bySets, func(s editable) {
			shown := s.last(verify.ReadLock, func(c *verify.Call) bool { return c.Name == otherSetLock })
			l := shown.Response.(lock.Lock)
			l.AsOf = l.AsOf.Add(3 * time.Second)
			shown.Response = l
		}, "play:set, which was acquired together with it, had expired at"},
		"an answer extends one lease only": {bySets, func(s editable) {
			s.member(verify.Renew, "ida", 0, 1, func(l *lock.Lease) { l.ExpiresAt = l.ExpiresAt.Add(-time.Millisecond) })
		}, "but play:together at"},
		"an answer has one lease only": {bySets, func(s editable) {
			s.grant(verify.Acquire, "ida", 0, func(g *lock.Grant) { g.Leases = g.Leases[:1] })
		}, "does not have one lease of each of play:set, play:together"},
		"one lease is renewed alone": {bySets, func(s editable) {
			alone := s.call(verify.Renew, "ida", 1)
			alone.Response, alone.Err = s.call(verify.Renew, "ida", 0).Response, nil
		}, `A lease of "ida" was renewed alone`},
		"two sets join the queues in two orders": {bySetOrder, func(s editable) {
			a, b := s.eventOn(setLock, lock.Queued, "jon"), s.eventOn(setLock, lock.Queued, "kim")
			a.Holder, b.Holder = b.Holder, a.Holder
		}, `Two sets have different orders: at play:set "kim" was queued before "jon" was queued`},
		"the lock of a set is granted to another meanwhile": {byExclusion, func(s editable) {
			e := s.eventOn(otherSetLock, lock.Granted, "jon")
			before := s.eventOn(otherSetLock, lock.Granted, "ida")
			e.At = before.At.Add(time.Millisecond)
		}, `while "ida" held it`},
		"the lock of a set expires before its promised end": {byEarlyEnd, func(s editable) {
			e := s.eventOn(otherSetLock, lock.Expired, "lea")
			e.At = s.eventOn(otherSetLock, lock.Granted, "lea").At.Add(time.Millisecond)
		}, "but its holder was promised"},
	})
}
