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
	s.add(verify.Acquire, lock.Acquire{Locks: []lock.Member{{Name: l.Name, Mode: lock.Exclusive}}, LeaseID: id, Holder: l.Holder, TTL: l.TTL},
		s.grant, 90*time.Millisecond, 110*time.Millisecond)
	s.add(verify.Renew, lock.Renew{Locks: []string{l.Name}, LeaseID: id}, lock.Grant{Lease: renewed}, renewSent, renewDone)
	s.add(verify.Release, lock.Release{Locks: []string{l.Name}, LeaseID: id}, nil, 1690*time.Millisecond, 1710*time.Millisecond)
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

// A sharedFixture is a history of readers that share a lock, and a token.
type sharedFixture struct {
	verify.History
	begin time.Time
}

func newSharedFixture() *sharedFixture {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &sharedFixture{verify.History{Start: begin}, begin}
}

// at returns the instant of the database's clock after so many milliseconds.
func (f *sharedFixture) at(ms int) time.Time {
	return f.begin.Add(time.Duration(ms) * time.Millisecond)
}

// add adds a call by the milliseconds of its sending and its answer.
func (f *sharedFixture) add(verb verify.Verb, asked, got any, sent, answered int) {
	f.Calls = append(f.Calls, verify.Call{
		ID: len(f.Calls), Client: len(f.Calls), Via: "here", Verb: verb, Name: "read:1", Request: asked, Response: got,
		Sent: time.Duration(sent) * time.Millisecond, Answered: time.Duration(answered) * time.Millisecond,
	})
}

func (f *sharedFixture) event(kind lock.Kind, l lock.Lease, at int) {
	n := int64(len(f.Events) + 1)
	f.Events = append(f.Events, lock.Event{ID: n, Revision: n, At: f.at(at), Name: l.Name, Kind: kind, Mode: l.Mode, Slot: l.Slot,
		Holder: l.Holder, Token: l.Token})
}

// grant adds a lease of one second.
func (f *sharedFixture) grant(number byte, holder string, slot, at int) lock.Lease {
	l := lock.Lease{ID: lock.LeaseID{number}, Name: "read:1", Mode: lock.Shared, Holder: holder, Slot: slot, Token: 7,
		TTL: time.Second, AcquiredAt: f.at(at), ExpiresAt: f.at(at + 1000)}
	f.add(verify.Acquire, lock.Acquire{Locks: []lock.Member{{Name: l.Name, Mode: l.Mode}}, LeaseID: l.ID, Holder: holder, TTL: l.TTL},
		lock.Grant{Lease: l}, at-5, at+5)
	f.event(lock.Granted, l, at)
	return l
}

// renew adds a renewal that was decided at that time.
func (f *sharedFixture) renew(l lock.Lease, decided, sent, answered int) {
	l.ExpiresAt = f.at(decided + 1000)
	f.add(verify.Renew, lock.Renew{Locks: []string{l.Name}, LeaseID: l.ID}, lock.Grant{Lease: l}, sent, answered)
}

func (f *sharedFixture) release(l lock.Lease, at int) {
	f.add(verify.Release, lock.Release{Locks: []string{l.Name}, LeaseID: l.ID}, nil, at-5, at+5)
	f.event(lock.Released, l, at)
}

// verifyToken adds a verification of the token.
func (f *sharedFixture) verifyToken(slot *int, status lock.TokenStatus, remaining time.Duration, at int) {
	f.add(verify.VerifyToken, lock.Verify{Name: "read:1", Token: 7, Slot: slot},
		lock.Verification{Name: "read:1", Token: 7, Status: status, Remaining: remaining, Newest: 7, CheckedAt: f.at(at)}, at-5, at+5)
}

// TestVerificationDoesNotApplyToTheNextLeaseInTheSlot: of two readers with one token the first releases,
// and a third takes its slot in the same phase. A verification in between, that the slot's lease has ended,
// says nothing about the new lease.
func TestVerificationDoesNotApplyToTheNextLeaseInTheSlot(t *testing.T) {
	t.Parallel()
	f := newSharedFixture()
	ann, bob, first := f.grant(1, "ann", 1, 100), f.grant(2, "bob", 2, 200), 1
	f.release(ann, 300)
	f.verifyToken(&first, lock.Ended, 0, 400)
	cyd := f.grant(3, "cyd", 1, 500)
	f.renew(cyd, 600, 595, 605)
	f.release(bob, 700)
	f.release(cyd, 800)
	if r := f.Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

// TestVerificationMayPrecedeTheCommitOfTheNextLeaseInTheSlot: that lease was decided at an earlier instant, but no
// client knew of it yet. If its holder had been answered, or if no lease had the token, it would be a violation.
func TestVerificationMayPrecedeTheCommitOfTheNextLeaseInTheSlot(t *testing.T) {
	t.Parallel()
	first := 1
	for _, c := range []struct {
		name     string
		slot     *int
		answered int
		ok       bool
	}{
		{"committed after the verification", &first, 450, true},
		{"answered before the verification", &first, 394, false},
		{"no lease has the token", nil, 450, false},
	} {
		f := newSharedFixture()
		ann, bob := f.grant(1, "ann", 1, 100), f.grant(2, "bob", 2, 200)
		f.release(ann, 300)
		f.verifyToken(c.slot, lock.Ended, 0, 400)
		cyd := f.grant(3, "cyd", 1, 390)
		f.Calls[len(f.Calls)-1].Answered = time.Duration(c.answered) * time.Millisecond
		f.renew(cyd, 600, 595, 605)
		f.release(bob, 700)
		f.release(cyd, 800)
		if r := f.Check(verify.CheckOptions{}); r.OK() != c.ok {
			t.Errorf("%s: %s", c.name, text(t, r))
		}
	}
}

// TestVerificationOfATokenSaysNothingAboutOneOfItsLeases: the token of two readers is current because of one of them.
// The renewal of the other one was decided before its end, and is committed after it. With a verification of its slot,
// it would be a violation.
func TestVerificationOfATokenSaysNothingAboutOneOfItsLeases(t *testing.T) {
	t.Parallel()
	for _, bySlot := range []bool{false, true} {
		f := newSharedFixture()
		ann, bob, first := f.grant(1, "ann", 1, 100), f.grant(2, "bob", 2, 500), 1
		f.renew(ann, 1090, 1085, 1200)
		if bySlot {
			f.verifyToken(&first, lock.Ended, 0, 1110)
		} else {
			f.verifyToken(nil, lock.Current, 390*time.Millisecond, 1110)
		}
		r := lock.Record{Name: "read:1", Revision: 2, Token: 7, ChangedAt: f.at(500), Leases: []lock.Lease{bob}}
		f.add(verify.ReadLock, "read:1", r.Lock(f.at(1130)), 1125, 1135)
		f.release(bob, 1250)
		f.release(ann, 1300)
		if r := f.Check(verify.CheckOptions{}); r.OK() == bySlot {
			t.Errorf("by its slot: %t; %s", bySlot, text(t, r))
		}
	}
}
