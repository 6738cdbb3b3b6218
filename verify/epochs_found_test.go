package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// begun returns the first event of the first epoch after the beginning.
func (s editable) begun() *lock.Event {
	s.t.Helper()
	for i := 1; i < len(s.Events); i++ {
		if s.Events[i].ID-s.Events[i-1].ID >= lock.EventJump {
			return &s.Events[i]
		}
	}
	s.t.Fatal("no epoch has begun")
	return nil
}

// moved returns a mutation that moves the holder's event.
func moved(check string, kind lock.Kind, holder string, by time.Duration, want string) mutation {
	return mutation{check, func(s editable) {
		e := s.event(kind, holder)
		e.At = e.At.Add(by)
	}, want}
}

// shortened lets the holder's lease be over before the first epoch ends.
func shortened(holder string) func(editable) {
	return func(s editable) {
		s.grant(verify.Acquire, holder, 0, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(-8 * time.Second) })
	}
}

// after moves the call to the first answers of the new epoch.
func after(s editable, c *verify.Call) {
	at := s.call(verify.Acquire, "first late", 0).Answered
	c.Sent, c.Answered = at+1000, at+2000
}

func TestBrokenPromisesOfAnEpochAreFound(t *testing.T) {
	t.Parallel()
	base := recordEpochs(t)
	for name, c := range map[string]mutation{
		"a lease ends as if no epoch had begun": moved(byEarlyEnd, lock.Expired, "first silent", -15*time.Second,
			"but its holder was promised"),
		"a lease ends a moment too early": moved(byEarlyEnd, lock.Expired, "second silent", -time.Second,
			"but its holder was promised"),
		"a session ends as if no epoch had begun": moved(bySessions, lock.Expired, "first quiet", -7*time.Second,
			"but its session was extended to"),
		"a grace ends as if no epoch had begun": moved(byEarlyEnd, lock.Granted, "first next", -time.Second, "during the grace of"),
		"a place is kept as if no epoch had begun": moved(byPlaces, lock.Dequeued, "first place", -40*time.Second,
			"lost its place"),
		"a lease that was over is renewed":          {byEpochs, shortened("first over"), "but was used in the next one"},
		"a lease that was over is shown":            {byEpochs, shortened("first silent"), "but was used in the next one"},
		"a lease that is over by the rules is held": {byLinearizable, shortened("second over"), "not linearizable"},
		"an unclaimed grant is claimed": {byEpochs, func(s editable) {
			c := s.call(verify.Acquire, "first claimed", 0)
			c.Answered = s.call(verify.Acquire, "first late", 0).Answered + 1000
			at := s.begun().At.Add(200 * time.Millisecond)
			s.grant(verify.Acquire, "first claimed", 0, func(g *lock.Grant) { g.AcquiredAt, g.ExpiresAt = at, at.Add(g.TTL) })
		}, "an unclaimed grant returns to the queue"},
		"tokens go on": {byEpochs, func(s editable) {
			for i := range s.Events {
				if e := &s.Events[i]; e.Kind == lock.Granted && e.Token > lock.TokenJump {
					e.Token -= lock.TokenJump - 1
					return
				}
			}
		}, "others may have been lost"},
		"the epoch before goes on": {byEpochs, func(s editable) { after(s, s.call(verify.Release, "first claimed before", 0)) },
			"but a later epoch had answered"},
		"a lock is granted twice, by the database's clock": {byExclusion, func(s editable) { s.grantLate() }, "while"},
		"a lock is granted twice, by the clients' clocks":  {byClients, func(s editable) { s.grantLate() }, "counted on"},
		"a grant of the epoch before is lost":              {byAgreement, func(s editable) { s.removeEvents(of("first silent")) }, "it was lost"},
		"a release of the epoch before is lost": {byAgreement, func(s editable) {
			s.removeEvents(is(lock.Released, "first claimed before"))
		}, "it was lost"},
		"a read shows another end than the renewal": {byLinearizable, func(s editable) {
			s.grant(verify.Renew, "first kept", 1, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(-time.Second) })
		}, "read"},
		"a read shows another time of the last change": {byAgreement, func(s editable) {
			c := s.last(verify.ReadLock, func(c *verify.Call) bool { return c.Name == "play:second:silent" })
			l := c.Response.(lock.Lock)
			l.ChangedAt = l.ChangedAt.Add(-time.Second)
			c.Response = l
		}, "A read showed revision"},
		"a freeze of the epoch before is forgotten": {byPolicy, func(s editable) {
			granted := s.call(verify.Acquire, "first frozen", 1)
			thaw := s.last(verify.Thaw, func(c *verify.Call) bool { return c.Name == "play:first:frozen" })
			thaw.Sent, thaw.Answered = granted.Answered+1, granted.Answered+2
		}, "but the freeze of"},
		"a set is granted in two epochs": {bySets, func(s editable) { s.beginEpoch(lock.Event{ID: s.event(lock.Granted, "first set").ID + 1}) }, "in part"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFound(t, base, c)
		})
	}
}

// grantLate answers a call with a lease that another client has.
func (s editable) grantLate() {
	c := s.call(verify.Acquire, "first late", 0)
	g := s.call(verify.Renew, "first over", 0).Response.(lock.Grant)
	g.ID, g.Holder, g.Name, g.Token = c.Request.(lock.Acquire).LeaseID, "first late", c.Name, g.Token+2*lock.TokenJump
	g.AcquiredAt = s.begun().At.Add(300 * time.Millisecond)
	g.ExpiresAt, g.Leases = g.AcquiredAt.Add(g.TTL), nil
	c.Response, c.Err = g, nil
}
