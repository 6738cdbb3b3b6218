package faults_test

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

const transactFile = "store/internal/epoch/transact.go"

// sessionStages are the comparisons that keep a heartbeat and a takeover from both succeeding.
var sessionStages = []staged{
	{mutant: mutant{name: "the end of a session has an effect before it is recorded", file: "lock/session.go",
		from: "return s.Ended == 0 && s.IsOver(now) }", to: "return !MUTATED && s.Ended == 0 && s.IsOver(now) }"},
		situation: heartbeatNotVisible},
	{mutant: mutant{name: "the end of a session is recorded without its row", file: "store/internal/row/sql/expire_sessions.sql",
		from: "    for update\n", to: ""}, situation: heartbeatNotVisible},
	{mutant: mutant{name: "a heartbeat is decided before it has the row", file: transactFile,
		from: "\tlock(b)\n\tQueue(b, &e)\n",
		to:   "\tif MUTATED {\n\t\tQueue(b, &e)\n\t\tlock(b)\n\t} else {\n\t\tlock(b)\n\t\tQueue(b, &e)\n\t}\n"},
		situation: heartbeatLate},
}

// openSession opens a session with a lease of the situation's lock.
func (s *stage) openSession(ttl time.Duration) lock.SessionGrant {
	s.Helper()
	g, err := s.a().OpenSession(s.Context(), lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: "worker", TTL: ttl})
	s.must(err)
	a := s.request(s.name, 0)
	a.SessionID = g.ID
	_, err = s.a().Acquire(s.Context(), a)
	s.must(err)
	return g
}

// heartbeatNotVisible: the commit of a heartbeat waits, for a standby, say, until the session is over as others see
// it. Then another client asks for its lock.
func heartbeatNotVisible(s *stage) error {
	g := s.openSession(2 * time.Second)
	s.exec("begin")
	tag, err := s.admin.Exec(s.Context(), `update paddock.sessions set expires_at = clock_timestamp() + interval '1 hour'
		where ref = $1 and clock_timestamp() < expires_at`, int64(g.ID.Ref()))
	s.must(err)
	sleepFor(s.Context(), time.Until(g.Until.Add(100*time.Millisecond)))
	taken := make(chan error)
	go func() {
		_, err := s.b().Acquire(s.Context(), s.request(s.name, time.Minute))
		taken <- err
	}()
	sleepFor(s.Context(), 100*time.Millisecond)
	s.exec("commit")
	refused := <-taken
	if tag.RowsAffected() == 0 {
		return nil // the machine was too slow to renew in time
	}
	if _, err := s.a().RenewSession(s.Context(), lock.RenewSession{ID: g.ID}); err != nil {
		return violation("a session that was renewed in time is lost: " + err.Error())
	}
	return s.granted(refused)
}

// heartbeatLate: a heartbeat waits for its locked row until the session is over.
func heartbeatLate(s *stage) error {
	g := s.openSession(time.Second)
	sleepFor(s.Context(), time.Until(g.Until.Add(-150*time.Millisecond)))
	s.exec("begin")
	s.exec("select from paddock.sessions where ref = $1 for update", int64(g.ID.Ref()))
	done := make(chan error)
	go func() {
		_, err := s.a().RenewSession(s.Context(), lock.RenewSession{ID: g.ID})
		done <- err
	}()
	s.exec(`select pg_sleep(extract(epoch from expires_at - clock_timestamp()) + 0.03) from paddock.sessions where ref = $1`,
		int64(g.ID.Ref()))
	s.exec("rollback")
	err := <-done
	if err == nil {
		return violation("a session was renewed after its end")
	}
	if !errors.Is(err, lock.ErrSessionLost) {
		s.Fatal(err)
	}
	return nil
}
