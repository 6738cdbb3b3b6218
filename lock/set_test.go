package lock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// setOf returns an acquire with lease ID n of exclusive leases of the locks.
func setOf(n byte, names ...string) lock.Acquire {
	a := lock.Acquire{LeaseID: id(n), Holder: "worker", TTL: 10 * time.Second}
	for _, name := range names {
		a.Locks = append(a.Locks, exclusiveLock(name))
	}
	return a
}

// heldOrWaiting runs the test with a set of the locks a and b that is held, and with one that waits, for b is held.
func heldOrWaiting(t *testing.T, test func(t *testing.T, m *setModel, set lock.Acquire)) {
	t.Helper()
	for what, waits := range map[string]bool{"held": false, "waiting": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m, set := newSetModel(t), setOf(1, "a", "b")
			if waits {
				m.acquire(setOf(9, "b"))
				set.Wait = lock.MaxWait
			}
			if _, d := m.acquire(set); d.Err != nil || d.Queued != waits {
				t.Fatalf("decided %+v", d)
			}
			before := []lock.Record{m.record("a"), m.record("b")}
			test(t, m, set)
			if after := []lock.Record{m.record("a"), m.record("b")}; !slices.EqualFunc(before, after, equalRecords) {
				t.Errorf("a refused call changed %+v to %+v", before, after)
			}
		})
	}
}

func TestALeaseIDBelongsToItsSet(t *testing.T) {
	t.Parallel()
	heldOrWaiting(t, func(t *testing.T, m *setModel, set lock.Acquire) {
		other := set
		other.Holder = "another"
		reads := setOf(1, "a")
		reads.Locks = append(reads.Locks, sharedLock("b"))
		for _, a := range []lock.Acquire{setOf(1, "a", "c"), setOf(1, "0", "b"), setOf(1, "a", "b", "c"), setOf(1, "a"), setOf(1, "b"), reads, other} {
			for _, a.Wait = range []time.Duration{0, lock.MaxWait} {
				if _, d := m.acquire(a); !errors.Is(d.Err, lock.ErrLeaseIDInUse) {
					t.Errorf("%v is answered with %v", a.Locks, d.Err)
				}
			}
		}
	})
	t.Run("and not to a set if one lock has it", func(t *testing.T) {
		t.Parallel()
		m := newSetModel(t)
		m.acquire(setOf(1, "b"))
		for _, a := range []lock.Acquire{setOf(1, "a", "b"), setOf(1, "c", "b", "a")} {
			if _, d := m.acquire(a); !errors.Is(d.Err, lock.ErrLeaseIDInUse) {
				t.Errorf("%v is answered with %v", a.Locks, d.Err)
			}
		}
	})
}

// tell renews and releases the locks, and returns what both are told.
func (m *setModel) tell(n byte, names ...string) []error {
	m.t.Helper()
	renew, release := lock.Renew{Locks: names, LeaseID: id(n)}, lock.Release{Locks: names, LeaseID: id(n)}
	if len(names) == 1 {
		renew, release = lock.Renew{Locks: []string{names[0]}, LeaseID: id(n)}, lock.Release{Locks: []string{names[0]}, LeaseID: id(n)}
	}
	return []error{m.do(renew).Err, m.do(release).Err}
}

func TestASetIsRenewedAndReleasedByAllOfItsNames(t *testing.T) {
	t.Parallel()
	heldOrWaiting(t, func(t *testing.T, m *setModel, _ lock.Acquire) {
		for _, names := range [][]string{{"a", "b", "c"}, {"0", "a", "b"}, {"a", "c"}, {"b", "c"}} {
			for _, err := range m.tell(1, names...) {
				if e := new(lock.Error); !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != "names" {
					t.Errorf("%q are refused with %v", names, err)
				}
			}
		}
		for _, name := range []string{"a", "b"} {
			for _, err := range m.tell(1, name) {
				if e := new(lock.Error); !errors.As(err, &e) || e.Code != lock.ErrLeaseInSet || !slices.Equal(e.Set, []string{"a", "b"}) {
					t.Errorf("%s alone is refused with %v", name, err)
				}
			}
		}
	})
	t.Run("and a lease that was acquired alone by its own", func(t *testing.T) {
		t.Parallel()
		m := newSetModel(t)
		m.acquire(setOf(1, "b"))
		for _, names := range [][]string{{"a", "b"}, {"b", "c"}} {
			for _, err := range m.tell(1, names...) {
				if !errors.Is(err, lock.ErrInvalid) {
					t.Errorf("%q are refused with %v", names, err)
				}
			}
		}
	})
}

func TestAnEndedSetIsLost(t *testing.T) {
	t.Parallel()
	m := newSetModel(t)
	m.acquire(setOf(1, "a", "b"))
	for range 2 {
		if d := m.do(lock.Release{Locks: []string{"a", "b"}, LeaseID: id(1)}); d.Err != nil {
			t.Fatal(d.Err)
		}
	}
	for _, names := range [][]string{{"a", "b"}, {"a"}, {"b"}} {
		_, again := m.acquire(setOf(1, names...))
		answers := m.tell(1, names...)
		if answers[1] != nil {
			t.Errorf("a repeated release of %q is told %v", names, answers[1])
		}
		for _, err := range []error{again.Err, answers[0]} {
			if e := new(lock.Error); !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Released || e.Token != 1 {
				t.Errorf("%q: %v", names, err)
			}
		}
	}
}

// TestReadersOfASetJoinOthers with their token, and its writers have a new one.
func TestReadersOfASetJoinOthers(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- shared a", "- shared b", "- exclusive+shared c,b", "- shared a,b", "- shared d,e")
	for _, want := range []struct {
		name  string
		call  int // from 1
		token lock.Token
	}{{"a", 1, 1}, {"b", 2, 2}, {"c", 3, 3}, {"b", 3, 2}, {"a", 4, 1}, {"b", 4, 2}, {"d", 5, 4}, {"e", 5, 4}} {
		leases := s.locks[want.name].Leases
		i := slices.IndexFunc(leases, func(l lock.Lease) bool { return l.ID == s.calls[want.call-1].LeaseID })
		if i < 0 || leases[i].Token != want.token || leases[i].Slot == 0 != (want.name == "c") {
			t.Errorf("call %d has of %s %+v, want token %d", want.call, want.name, leases, want.token)
		}
	}
}

// TestASetIsGrantedWhenTheCallBeforeItLeaves a kept place: readers hold the lock, and that call would write.
func TestASetIsGrantedWhenTheCallBeforeItLeaves(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]bool{"at the end of its wait": false, "as its connection is cut": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newSetModel(t)
			reads := lock.Acquire{LeaseID: id(1), Holder: "reader", TTL: time.Minute, Locks: members(sharedLock("a"))}
			m.acquire(reads)
			writer, _ := m.acquire(lock.Acquire{LeaseID: id(2), Holder: "writer", TTL: time.Minute, Wait: lock.MaxWait, Locks: members(exclusiveLock("a"))})
			reads.LeaseID, reads.Wait, reads.Locks = id(3), lock.MaxWait, members(sharedLock("a"), sharedLock("b"))
			if _, d := m.acquire(reads); !d.Queued {
				t.Fatalf("decided %+v", d)
			}
			m.do(lock.Leave{Locks: []string{"a"}, LeaseID: writer.LeaseID, Attachment: writer.Attachment, KeepPlace: true, Disconnected: cut})
			if n := len(m.record("b").Leases); n != 1 {
				t.Errorf("the set has %d leases of the other lock", n)
			}
		})
	}
}

// TestTheRestOfASetIsRemovedAndUnblocksWaiters: the row of one of its locks was deleted by hand.
func TestTheRestOfASetIsRemovedAndUnblocksWaiters(t *testing.T) {
	t.Parallel()
	for what, command := range map[string]func(set lock.Acquire) lock.Command{
		"by a leave": func(a lock.Acquire) lock.Command {
			return lock.Leave{Locks: a.Names(), LeaseID: a.LeaseID, Attachment: a.Attachment}
		},
		"by a claim": func(a lock.Acquire) lock.Command {
			return lock.Claim{Locks: a.Names(), LeaseID: a.LeaseID, Attachment: a.Attachment}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newSetModel(t)
			m.acquire(setOf(1, "a"))
			waiting := setOf(2, "a", "b")
			waiting.Wait = lock.MaxWait
			set, _ := m.acquire(waiting)
			next := setOf(3, "b")
			next.Wait = lock.MaxWait
			if _, d := m.acquire(next); !d.Queued {
				t.Fatalf("decided %+v", d)
			}
			delete(m.locks, "a")
			if d := m.do(command(set)); !errors.Is(d.Err, lock.ErrHeld) {
				t.Errorf("refused with %v", d.Err)
			}
			if leases := m.record("b").Leases; len(leases) != 1 || leases[0].ID != next.LeaseID {
				t.Errorf("the lock that remains has the leases %+v", leases)
			}
		})
	}
}

func TestASlotOfASetIsRevokedWithTheSet(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- exclusive+shared x,a", "- exclusive+shared y,a", "- shared a")
	if d := s.do(lock.Revoke{Name: "a", Token: 1, Slot: slot(1), Reason: "r", SkipGrace: true}); d.Err != nil || d.FollowUp == nil {
		t.Fatalf("decided %+v", d)
	} else if d = s.do(d.FollowUp); d.Err != nil || d.FollowUp != nil {
		t.Fatalf("the rest was decided %+v", d)
	}
	for name, want := range map[string]int{"x": 0, "a": 2, "y": 1} {
		if n := len(s.locks[name].Leases); n != want {
			t.Errorf("%s has %d leases, want %d", name, n, want)
		}
	}
}

func TestASetOfPermitsWithAnotherCapacityIsRefused(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "- permit a", "- exclusive+permit b,a")
	other := s.calls[1]
	other.LeaseID, other.Locks = id(9), []lock.Member{{Name: "a", Mode: lock.Permit, Capacity: 3}, exclusiveLock("c")}
	d := s.do(other)
	if e := new(lock.Error); !errors.As(d.Err, &e) || e.Code != lock.ErrCapacityMismatch || e.Capacity != 2 {
		t.Errorf("refused with %v", d.Err)
	}
	if r := s.locks["c"]; len(r.Leases)+len(r.Queue) > 0 {
		t.Errorf("the other lock is %+v", r)
	}
}
