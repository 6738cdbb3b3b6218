package store

import (
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestAGrantThatWasAnsweredIsNotTakenBack: the wait of a call is over just when a release
// promotes it, so it is its leaving that is answered with the grant, and its seat is given
// back before the release has told whom it promoted.
func TestAGrantThatWasAnsweredIsNotTakenBack(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, told := range []bool{true, false} {
		first, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "first"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := lock.Acquire{Name: "a", Holder: "second", LeaseID: lock.LeaseID(uuid.New()), Wait: lock.MaxWait, Replica: s.self}.Resolve(s.bounds)
		if err != nil {
			t.Fatal(err)
		}
		seat, _, err := s.seats.take(a)
		if err != nil {
			t.Fatal(err)
		}
		a.Attachment = seat.attachment
		if out, err := s.do(t.Context(), acquireCall{Acquire: a}); err != nil || !out.Queued {
			t.Fatalf("it does not wait: %v", err)
		}
		promotion := ranAlone(t, s, lock.Release{Name: "a", LeaseID: first.ID})
		if told {
			ranAlone(t, s, lock.Leave{Name: "a", LeaseID: a.LeaseID, Attachment: a.Attachment})
		}
		s.seats.leave(seat, told)

		s.tell([]outcome{promotion})

		for l := look(t, s); !told && l.State != lock.Free; l = look(t, s) {
		}
		s.group("a").Wait()
		if l := look(t, s); told != (l.State == lock.Held) {
			t.Errorf("a client knows of the lease: %t; the lock is %s", told, l.State)
		}
		if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: a.LeaseID}); told && err != nil {
			t.Error(err)
		}
	}
}

func look(t *testing.T, s *Store) lock.Lock {
	t.Helper()
	l, err := s.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ranAlone runs the command as a batch does, but tells nobody whom it has promoted.
func ranAlone(t *testing.T, s *Store, cmd lock.Command) outcome {
	t.Helper()
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	c := []*call{{Req: cmd}}
	tx := newTx(conn.Conn(), s.self)
	outcomes, err := tx.decide(t.Context(), c, s.want(c))
	if err == nil {
		err = tx.save(t.Context())
	}
	if err != nil || outcomes[0].Err != nil {
		t.Fatalf("%v, %v", err, outcomes[0].Err)
	}
	return outcomes[0]
}
