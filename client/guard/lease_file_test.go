package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// before makes a request of a process that was then killed, and returns its lease_id file.
func (s *fixture) before(a lock.Acquire) (lock.Grant, string, error) {
	s.Helper()
	a.Locks, a.LeaseID, a.Holder = lock.One(name), lock.LeaseID(uuid.New()), "pod-0"
	file := filepath.Join(s.TempDir(), "lease")
	s.must(os.WriteFile(file, fmt.Appendf(nil, `{"locks":[%q],"lease_id":%q,"holder":"pod-0"}`, name, uuid.UUID(a.LeaseID)), 0o600))
	g, err := s.locks.Acquire(s.Context(), a)
	return g, file, err
}

// wantNoFile checks that nothing is kept for the next process.
func wantNoFile(s *fixture, file string) {
	s.Helper()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("the file is still there: %v", err)
	}
}

func TestTheNextProcessGoesOnWithTheLease(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g, file, err := s.before(lock.Acquire{TTL: 10 * time.Second})
		s.must(err)
		l := s.acquire(guard.Options{LeaseIDFile: file, TTL: ttl})
		if l.Token() != g.Token || l.Holder() != "pod-0" {
			s.Errorf("it has the token %d of %s, not %d", l.Token(), l.Holder(), g.Token)
		}
		if left := time.Until(l.Deadline()); left <= 10*time.Second {
			s.Errorf("its TTL is still that of the process before: it has %v", left)
		}
		s.must(l.Release(s.Context()))
		wantNoFile(s, file)
		s.wantEvents(lock.Granted, lock.Released)
	})
}

func TestTheNextProcessGoesOnAtThePlaceInTheQueue(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Hour})
		_, file, err := s.before(lock.Acquire{Wait: time.Second, KeepPlace: true})
		s.wantError(err, lock.ErrHeld)
		later := make(chan error, 1)
		ctx, cancel := context.WithCancel(s.Context())
		go func() {
			l, err := guard.Acquire(ctx, s.locks, name, guard.Options{Holder: "later", Wait: time.Minute})
			if err == nil {
				err = l.Release(ctx)
			}
			later <- err
		}()
		time.Sleep(time.Second) // of the bubble
		time.AfterFunc(time.Second, func() { s.releaseOther(other) })
		l := s.acquire(guard.Options{LeaseIDFile: file, Wait: time.Minute})
		if l.Holder() != "pod-0" {
			s.Errorf("%s was granted the lock", l.Holder())
		}
		s.must(l.Release(s.Context()))
		s.must(<-later)
		cancel()
	})
}

func TestAnEndedLeaseIsReplacedInTheFile(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g, file, err := s.before(lock.Acquire{TTL: time.Second})
		s.must(err)
		time.Sleep(2 * time.Second)
		o := guard.Options{LeaseIDFile: file, Holder: "pod-1"}
		l := s.acquire(o)
		if l.Token() <= g.Token || l.Holder() != "pod-1" {
			s.Errorf("it has the token %d of %s after %d", l.Token(), l.Holder(), g.Token)
		}
		_, err = guard.Acquire(s.Context(), s.locks, name, o)
		s.wantError(err, lock.ErrLeaseIDInUse) // the same work twice
		text, err := os.ReadFile(file)
		s.must(err)
		l2, err := guard.AcquireUnmanaged(s.Context(), s.locks, name, guard.Options{LeaseID: idIn(s, text), Holder: "pod-1"})
		s.must(err)
		if l2.Token != l.Token() {
			s.Errorf("the file has the lease of token %d, not %d", l2.Token, l.Token())
		}
	})
}

func idIn(s *fixture, text []byte) lock.LeaseID {
	s.Helper()
	var kept struct {
		ID uuid.UUID `json:"lease_id"`
	}
	s.must(json.Unmarshal(text, &kept))
	return lock.LeaseID(kept.ID)
}

func TestALostLeaseIsNotKept(t *testing.T) {
	withFixture(t, func(s *fixture) {
		file := filepath.Join(s.TempDir(), "lease")
		l := s.acquire(guard.Options{LeaseIDFile: file, TTL: ttl})
		_, err := s.locks.Revoke(s.Context(), lock.Revoke{Name: name, Token: l.Token(), Reason: "test"})
		s.must(err)
		<-l.Done()
		s.wantStates(guard.Lost)
		wantNoFile(s, file)
		next := s.acquire(guard.Options{LeaseIDFile: file, TTL: ttl})
		if next.Token() <= l.Token() {
			s.Errorf("the next lease has the token %d after %d", next.Token(), l.Token())
		}
		if err := l.Release(s.Context()); !errors.Is(err, lock.ErrLeaseLost) {
			s.Errorf("the release of the lost lease: %v", err)
		}
		if _, err := os.Stat(file); err != nil {
			s.Errorf("the release of the lost lease has removed the file of the next one: %v", err)
		}
	})
}

func TestAnUnansweredReleaseIsLeftToTheNextProcess(t *testing.T) {
	withFixture(t, func(s *fixture) {
		file := filepath.Join(s.TempDir(), "lease")
		l := s.acquire(guard.Options{LeaseIDFile: file, TTL: time.Minute})
		s.service.setFault(fault{refuse: true})
		s.wantError(l.Release(s.Context()), lock.ErrUnavailable)
		s.service.setFault(fault{})
		if next := s.acquire(guard.Options{LeaseIDFile: file, TTL: time.Minute}); next.Token() != l.Token() {
			s.Errorf("the next process has the token %d, not %d", next.Token(), l.Token())
		}
	})
}

func TestAFailedAcquireLeavesNoFile(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.grantOther(lock.Acquire{})
		o := guard.Options{LeaseIDFile: filepath.Join(s.TempDir(), "lease")}
		for range 2 { // the second one is not told that another process uses the file
			_, err := guard.Acquire(s.Context(), s.locks, name, o)
			s.wantError(err, lock.ErrHeld)
			wantNoFile(s, o.LeaseIDFile)
		}
	})
}

func TestUnusableLeaseIDFilesAreReported(t *testing.T) {
	withFixture(t, func(s *fixture) {
		junk := filepath.Join(s.TempDir(), "lease")
		s.must(os.WriteFile(junk, []byte("5e0c7a0e"), 0o600))
		noLock := filepath.Join(s.TempDir(), "no-lock")
		s.must(os.WriteFile(noLock, fmt.Appendf(nil, `{"lease_id":%q,"holder":"pod-0"}`, uuid.New()), 0o600))
		for what, o := range map[string]guard.Options{
			"junk":            {LeaseIDFile: junk},
			"without a lock":  {LeaseIDFile: noLock},
			"a directory":     {LeaseIDFile: filepath.Dir(junk)},
			"no directory":    {LeaseIDFile: filepath.Join(junk, "lease")},
			"with a lease_id": {LeaseIDFile: junk, LeaseID: lock.LeaseID(uuid.New())},
		} {
			_, err := guard.Acquire(s.Context(), s.locks, name, o)
			if e := lockError(s, err); e.Code != lock.ErrInvalid || e.Field != "LeaseIDFile" {
				s.Errorf("%s: %v", what, err)
			}
		}
		_, err := guard.AcquireUnmanaged(s.Context(), s.locks, name, guard.Options{LeaseIDFile: junk})
		s.wantError(err, lock.ErrInvalid)
	})
}

func TestTheFileOfAnotherLeaseIsLeftAlone(t *testing.T) {
	withFixture(t, func(s *fixture) {
		_, file, err := s.before(lock.Acquire{TTL: time.Minute})
		s.must(err)
		for _, o := range []guard.Options{{LeaseIDFile: file, Mode: lock.Shared}, {LeaseIDFile: file, Stays: true}} {
			_, err = guard.Acquire(s.Context(), s.service, name, o)
			if s.wantError(err, lock.ErrLeaseIDInUse); !strings.Contains(err.Error(), "another mode, number of permits or on_expiry") {
				s.Errorf("refused with %v", err)
			}
		}
		if _, err := os.Stat(file); err != nil {
			s.Error(err)
		}
		s.wantEvents(lock.Granted)
	})
}

func TestAFileOfOtherLocksIsRefused(t *testing.T) {
	withFixture(t, func(s *fixture) {
		_, file, err := s.before(lock.Acquire{TTL: time.Minute})
		s.must(err)
		before, err := os.ReadFile(file)
		s.must(err)
		for what, members := range map[string][]lock.Member{
			"other":           lock.One("other"),
			"a," + name:       {{Name: name}, {Name: "a"}},
			name + "," + "zz": {{Name: "zz"}, {Name: name}},
		} {
			_, err := guard.AcquireAll(s.Context(), s.locks, members, guard.Options{LeaseIDFile: file})
			want := file + " keeps a lease of " + name + ", not of " + what + "; give each work a file of its own"
			if e := lockError(s, err); e.Code != lock.ErrInvalid || !strings.Contains(e.Detail, want) {
				s.Errorf("%s: %v", what, err)
			}
		}
		after, err := os.ReadFile(file)
		s.must(err)
		if string(after) != string(before) {
			s.Errorf("the file was %s and is %s", before, after)
		}
		s.wantEvents(lock.Granted)
	})
}

func TestASetOfLocksIsInTheFileInOrder(t *testing.T) {
	withFixture(t, func(s *fixture) {
		o := guard.Options{LeaseIDFile: filepath.Join(s.TempDir(), "lease"), TTL: time.Minute, Holder: "pod-0"}
		l, err := guard.AcquireAll(s.Context(), s.service, []lock.Member{{Name: "b"}, {Name: "a"}}, o)
		s.must(err)
		text, err := os.ReadFile(o.LeaseIDFile)
		s.must(err)
		if want := fmt.Sprintf(`{"locks":["a","b"],"lease_id":%q,"holder":"pod-0"}`+"\n", uuid.UUID(idIn(s, text))); string(text) != want {
			s.Errorf("the file is %s, want %s", text, want)
		}
		s.service.setFault(fault{refuse: true})
		s.wantError(l.Release(s.Context()), lock.ErrUnavailable)
		s.service.setFault(fault{})
		next, err := guard.AcquireAll(s.Context(), s.service, []lock.Member{{Name: "a"}, {Name: "b"}}, o)
		s.must(err)
		if next.Token() != l.Token() {
			s.Errorf("the next process has the token %d, not %d", next.Token(), l.Token())
		}
		s.must(next.Release(s.Context()))
	})
}
