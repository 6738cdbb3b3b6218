package engine

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const testLinger = 4 * time.Millisecond

func newLingering() *scripted {
	s := newScripted()
	s.linger = testLinger
	return s
}

func renewalOf(name string) *call { return callOf(lock.Renew{Name: name}) }

// TestRenewalsLingerForCompany: a renewal shares its batch with all renewals that arrive while it lingers.
func TestRenewalsLingerForCompany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLingering()
		close(s.gate)
		for round := range 3 {
			began := time.Now()
			first, last := renewalOf("a"), renewalOf("c")
			s.offerPatient(first)
			time.Sleep(testLinger / 2)
			s.offerPatient(renewalOf("b"))
			s.offerPatient(last)
			if _, err := last.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != testLinger {
				t.Errorf("round %d took %v, want %v", round, took, testLinger)
			}
			if b := s.batches(); len(b) != round+1 || len(b[round]) != 3 {
				t.Errorf("round %d: the batches are %v", round, b)
			}
		}
	})
}

// TestAnUrgentCallTakesLingeringRenewalsWithIt, before itself: it may be a release of the same lease.
func TestAnUrgentCallTakesLingeringRenewalsWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLingering()
		close(s.gate)
		began := time.Now()
		renewal, release := renewalOf("a"), callOf(lock.Release{Name: "a"})
		s.offerPatient(renewal)
		s.offer(release)
		if _, err := release.Wait(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if b := s.batches(); len(b) != 1 || len(b[0]) != 2 || !reflect.DeepEqual(b[0][1], release.Req.Command) {
			t.Errorf("the batches are %v, want one in which the release is last", b)
		}
	})
}

// TestRenewalsLingerBesideARunningBatch: its end is no reason for a small batch.
func TestRenewalsLingerBesideARunningBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLingering()
		s.keepBusy()
		s.offerPatient(renewalOf("a"))
		time.Sleep(testLinger / 2)
		close(s.gate)
		synctest.Wait()
		if b := s.batches(); len(b) != 1 {
			t.Errorf("when the batch before has ended, the batches are %v", b)
		}
		time.Sleep(testLinger / 2)
		synctest.Wait()
		if b := s.batches(); len(b) != 2 {
			t.Errorf("when the renewal has lingered, the batches are %v", b)
		}
	})
}

// TestALoneClientIsNotSlowedDown: of a client's renewals one after the other only few linger, and once there is
// company they all do.
func TestALoneClientIsNotSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLingering()
		close(s.gate)
		began := time.Now()
		const renewals = 10_000
		for range renewals {
			c := renewalOf("a")
			s.offerPatient(c)
			if _, err := c.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// One alone, then after pauses of 31, 63, 127, 255, 511, and as often as 1023 fits.
		if lingered := int(time.Since(began) / testLinger); lingered != 14 {
			t.Errorf("%d of %d renewals lingered", lingered, renewals)
		}
		for s.renewalTimer == nil { // until one lingers again
			s.offerPatient(renewalOf("a"))
			synctest.Wait()
		}
		s.offerPatient(renewalOf("b"))
		time.Sleep(testLinger)
		synctest.Wait()
		for i := range companyCredit + 1 {
			c, began := renewalOf("a"), time.Now()
			s.offerPatient(c)
			if _, err := c.Wait(t.Context()); err != nil || time.Since(began) != testLinger {
				t.Errorf("renewal %d after company: %v after %v", i, err, time.Since(began))
			}
		}
	})
}

// TestNoRenewalLingersWithoutTheOption, and none is left behind when the inbox is waited for.
func TestNoRenewalLingersWithoutTheOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, linger := range []time.Duration{0, testLinger} {
			s := newScripted()
			s.linger = linger
			close(s.gate)
			began, c := time.Now(), renewalOf("a")
			s.offerPatient(c)
			if linger > 0 {
				s.wait()
			}
			if _, err := c.Wait(t.Context()); err != nil || time.Since(began) != 0 {
				t.Errorf("linger %v: %v after %v", linger, err, time.Since(began))
			}
		}
	})
}

// TestOnlyRenewalsWithTimeLeftLinger: of leases that are known, and of which half the TTL and more than a second is
// left.
func TestOnlyRenewalsWithTimeLeftLinger(t *testing.T) {
	t.Parallel()
	id, here, now := lock.LeaseID{1}, time.Now(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	renewal := lock.Renew{Name: "a", LeaseID: id}
	for name, c := range map[string]struct {
		cmd       lock.Command
		ttl, left time.Duration
		unread    bool // the clock
		want      bool
	}{
		"fresh":                {cmd: renewal, ttl: time.Minute, left: time.Minute, want: true},
		"over half":            {cmd: renewal, ttl: time.Minute, left: 32 * time.Second, want: true},
		"less than half":       {cmd: renewal, ttl: time.Minute, left: 28 * time.Second},
		"short":                {cmd: renewal, ttl: time.Second, left: 900 * time.Millisecond},
		"over":                 {cmd: renewal, ttl: time.Minute, left: -time.Second},
		"no clock":             {cmd: renewal, ttl: time.Minute, left: time.Minute, unread: true},
		"another lease":        {cmd: lock.Renew{Name: "a", LeaseID: lock.LeaseID{2}}, ttl: time.Minute, left: time.Minute},
		"a lock not in memory": {cmd: lock.Renew{Name: "b", LeaseID: id}, ttl: time.Minute, left: time.Minute},
		"a release":            {cmd: lock.Release{Name: "a", LeaseID: id}, ttl: time.Minute, left: time.Minute},
	} {
		var cached cache
		if !c.unread {
			cached.clock = reading{shown: now, after: here, before: here}
		}
		lease := lock.Lease{Name: "a", ID: id, TTL: c.ttl, ExpiresAt: now.Add(time.Since(here) + c.left)}
		cached.put(&row.Row{Record: lock.Record{Name: "a", Leases: []lock.Lease{lease}}})
		if got := cached.patient(c.cmd); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
