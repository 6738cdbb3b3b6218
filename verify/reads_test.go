package verify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// The renewal in a readFixture is sent before the lease ends and answered long
// after that, because its commit waits for a standby.
const (
	readAhead = 100 * time.Millisecond // of the recorder's clock, compared with the database's
	renewSent = 900 * time.Millisecond
	renewDone = 1500 * time.Millisecond
)

// A readFixture is the history of one lease, to which tests add reads.
type readFixture struct {
	verify.History
	begin time.Time // of the database's clock
	grant lock.Grant
}

func newReadFixture() *readFixture {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := lock.LeaseID{1}
	l := lock.Lease{ID: id, Name: "read:1", Mode: lock.Exclusive, Holder: "ann", Token: 7, TTL: time.Second,
		AcquiredAt: begin, ExpiresAt: begin.Add(time.Second)}
	renewed := l
	renewed.ExpiresAt = begin.Add(renewSent + 10*time.Millisecond + time.Second)
	s := &readFixture{begin: begin.Add(-readAhead), grant: lock.Grant{Lease: l}}
	s.Start = s.begin
	s.add(verify.Acquire, lock.Acquire{Name: l.Name, LeaseID: id, Mode: lock.Exclusive, Holder: l.Holder, TTL: l.TTL},
		s.grant, 90*time.Millisecond, 110*time.Millisecond)
	s.add(verify.Renew, lock.Renew{Name: l.Name, LeaseID: id}, lock.Grant{Lease: renewed}, renewSent, renewDone)
	s.add(verify.Release, lock.Release{Name: l.Name, LeaseID: id}, nil, 1690*time.Millisecond, 1710*time.Millisecond)
	event := lock.Event{ID: 1, At: begin, Name: l.Name, Revision: 1, Kind: lock.Granted, Mode: l.Mode,
		Holder: l.Holder, Token: l.Token}
	end := event
	end.ID, end.Revision, end.Kind, end.At = 2, 2, lock.Released, s.at(1700*time.Millisecond)
	s.Events = []lock.Event{event, end}
	return s
}

// at converts a time of the recorder's clock to the database's clock.
func (s *readFixture) at(d time.Duration) time.Time { return s.begin.Add(d) }

func (s *readFixture) add(verb verify.Verb, asked, got any, sent, answered time.Duration) {
	s.Calls = append(s.Calls, verify.Call{
		Client: len(s.Calls), Via: "here", Verb: verb, Name: "read:1", Request: asked, Response: got, Sent: sent,
		Answered: answered,
	})
}

// addRead adds a read of the lock around that time. If held, the lease ends at until.
func (s *readFixture) addRead(around time.Duration, revision int64, held bool, until time.Duration) {
	l := lock.Lock{Name: "read:1", State: lock.Free, Revision: revision, Token: s.grant.Token, AsOf: s.at(around)}
	if revision > 0 {
		l.ChangedAt = s.Events[revision-1].At
	}
	if revision == 0 {
		l.Token = 0
	}
	if g := s.grant; held {
		l.State = lock.Held
		l.Leases = []lock.LeaseInfo{{Mode: g.Mode, Holder: g.Holder, Token: g.Token, AcquiredAt: g.AcquiredAt,
			ExpiresAt: s.at(until)}}
	}
	s.add(verify.ReadLock, "read:1", l, around-5*time.Millisecond, around+5*time.Millisecond)
}

// addVerification adds a verification of the token around that time.
func (s *readFixture) addVerification(around time.Duration, standing lock.TokenStatus, remaining time.Duration) {
	v := lock.Verification{Name: "read:1", Token: s.grant.Token, Status: standing, Newest: s.grant.Token,
		CheckedAt: s.at(around), Remaining: remaining}
	s.add(verify.VerifyToken, lock.Verify{Name: "read:1", Token: s.grant.Token}, v, around-5*time.Millisecond,
		around+5*time.Millisecond)
}

func (s *readFixture) check() verify.Report {
	slices.SortFunc(s.Calls, func(a, b verify.Call) int { return int(a.Sent - b.Sent) })
	for i := range s.Calls {
		s.Calls[i].ID = i
	}
	return s.Check(verify.CheckOptions{})
}

// The ends of the lease on the recorder's clock: before the renewal, and after it.
const (
	oldEnd = time.Second + readAhead
	newEnd = renewSent + 10*time.Millisecond + time.Second + readAhead
)

func TestConsistentReadsPass(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*readFixture){
		"GET shows the lease while it lasts": func(s *readFixture) {
			s.addRead(500*time.Millisecond, 1, true, oldEnd)
		},
		"GET shows it as free while its renewal is being committed": func(s *readFixture) {
			s.addRead(1200*time.Millisecond, 1, false, 0)
		},
		"GET shows the renewal": func(s *readFixture) {
			s.addRead(1600*time.Millisecond, 1, true, newEnd)
		},
		"GET shows that it was released": func(s *readFixture) {
			s.addRead(1800*time.Millisecond, 2, false, 0)
		},
		"verify says current while the renewal is being committed": func(s *readFixture) {
			s.addVerification(1200*time.Millisecond, lock.Current, newEnd-1200*time.Millisecond)
		},
		"verify says current before the end": func(s *readFixture) {
			s.addVerification(500*time.Millisecond, lock.Current, oldEnd-500*time.Millisecond)
		},
		"verify says ended after the release": func(s *readFixture) {
			s.addVerification(1800*time.Millisecond, lock.Ended, 0)
		},
		"verify waits for the row, and says current with the new lease": func(s *readFixture) {
			s.addVerification(renewDone, lock.Current, newEnd-renewDone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newReadFixture()
			read(s)
			if r := s.check(); !r.OK() {
				t.Error(text(t, r))
			}
		})
	}
}

func TestInconsistentReadsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read  func(*readFixture)
		check []string // each must find it
	}{
		"verify says ended while the renewal is being committed": {func(s *readFixture) {
			s.addVerification(1200*time.Millisecond, lock.Ended, 0)
		}, []string{byRevival, byLinearizable}},
		"verify says ended before the renewal is sent": {func(s *readFixture) {
			s.Calls[1].Sent = 1300 * time.Millisecond
			s.addVerification(1200*time.Millisecond, lock.Ended, 0)
		}, []string{byRevival, byLinearizable}},
		"verify says ended and then current": {func(s *readFixture) {
			s.addVerification(1200*time.Millisecond, lock.Ended, 0)
			s.addVerification(1250*time.Millisecond, lock.Current, newEnd-1250*time.Millisecond)
		}, []string{byRevival, byLinearizable}},
		"verify says ended, and GET shows the lease after that": {func(s *readFixture) {
			s.addVerification(1200*time.Millisecond, lock.Ended, 0)
			s.addRead(1250*time.Millisecond, 1, true, newEnd)
		}, []string{byRevival, byLinearizable}},
		"verify says ended once the renewal was answered": {func(s *readFixture) {
			s.addVerification(1600*time.Millisecond, lock.Ended, 0)
		}, []string{byLinearizable}},
		"verify says current after the release was answered": {func(s *readFixture) {
			s.addVerification(1800*time.Millisecond, lock.Current, newEnd-1800*time.Millisecond)
		}, []string{byRevival, byLinearizable}},
		"GET shows the lock as it was before a grant that was answered": {func(s *readFixture) {
			s.addRead(200*time.Millisecond, 0, false, 0)
		}, []string{byLinearizable}},
		"GET shows the lock as free once the renewal was answered": {func(s *readFixture) {
			s.addRead(1600*time.Millisecond, 1, false, 0)
		}, []string{byLinearizable}},
		"GET shows the end before a renewal that was answered": {func(s *readFixture) {
			s.addRead(1600*time.Millisecond, 1, true, oldEnd)
		}, []string{byLinearizable}},
		"GET is older than another client's GET": {func(s *readFixture) {
			s.Calls[2].Answered = 2 * time.Second
			s.addRead(1750*time.Millisecond, 2, false, 0)
			s.addRead(1800*time.Millisecond, 1, true, newEnd)
		}, []string{byLinearizable}},
		"GET shows a lock that was held as free before its end": {func(s *readFixture) {
			s.addRead(500*time.Millisecond, 1, false, 0)
		}, []string{byLinearizable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newReadFixture()
			c.read(s)
			r := s.check()
			for _, check := range c.check {
				if !slices.ContainsFunc(r.Checks,
					func(k verify.Check) bool { return k.Name == check && len(k.Violations) > 0 }) {
					t.Errorf("%q found nothing:\n%s", check, strings.TrimSpace(text(t, r)))
				}
			}
		})
	}
}

// TestVerificationDoesNotApplyToTheNextLeaseInTheSlot: of two readers with one token the first releases,
// and a third takes its slot in the same phase. A verification in between, that the slot's lease has ended,
// says nothing about the new lease.
func TestVerificationDoesNotApplyToTheNextLeaseInTheSlot(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	h := verify.History{Start: begin}
	add := func(verb verify.Verb, asked, got any, at int) {
		h.Calls = append(h.Calls, verify.Call{
			ID: len(h.Calls), Client: len(h.Calls), Via: "here", Verb: verb, Name: "read:1", Request: asked,
			Response: got, Sent: ms(at - 5), Answered: ms(at + 5),
		})
	}
	event := func(kind lock.Kind, l lock.Lease, at int) {
		h.Events = append(h.Events, lock.Event{
			ID: int64(len(h.Events) + 1), Revision: int64(len(h.Events) + 1), At: begin.Add(ms(at)), Name: l.Name,
			Kind: kind, Mode: l.Mode,
			Slot: l.Slot, Holder: l.Holder, Token: l.Token,
		})
	}
	reader := func(number byte, holder string, slot, at int) lock.Lease {
		l := lock.Lease{
			ID: lock.LeaseID{number}, Name: "read:1", Mode: lock.Shared, Holder: holder, Slot: slot, Token: 7,
			TTL:        time.Second,
			AcquiredAt: begin.Add(ms(at)), ExpiresAt: begin.Add(ms(at) + time.Second),
		}
		add(verify.Acquire, lock.Acquire{Name: l.Name, LeaseID: l.ID, Mode: l.Mode, Holder: holder, TTL: l.TTL},
			lock.Grant{Lease: l}, at)
		event(lock.Granted, l, at)
		return l
	}
	release := func(l lock.Lease, at int) {
		add(verify.Release, lock.Release{Name: l.Name, LeaseID: l.ID}, nil, at)
		event(lock.Released, l, at)
	}
	ann, bob, first := reader(1, "ann", 1, 100), reader(2, "bob", 2, 200), 1
	release(ann, 300)
	add(verify.VerifyToken, lock.Verify{Name: "read:1", Token: 7, Slot: &first},
		lock.Verification{Name: "read:1", Token: 7, Status: lock.Ended, Newest: 7, CheckedAt: begin.Add(ms(400))}, 400)
	cyd := reader(3, "cyd", 1, 500)
	renewed := cyd
	renewed.ExpiresAt = begin.Add(ms(600) + time.Second)
	add(verify.Renew, lock.Renew{Name: cyd.Name, LeaseID: cyd.ID}, lock.Grant{Lease: renewed}, 600)
	release(bob, 700)
	release(cyd, 800)
	if r := h.Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}
