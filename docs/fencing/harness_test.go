package fencing_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A harness is a database with two sessions that execute steps one at a time, as in PostgreSQL's isolation tester,
// and an observer.
type harness struct {
	*testing.T
	observer *pgx.Conn
	sessions [2]*session
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	url := newDatabase(t)
	s := &harness{T: t, observer: connect(t, url)}
	for i := range s.sessions {
		conn := connect(t, url)
		must(t, conn, "set synchronous_commit = off") // no crash in this test
		s.sessions[i] = &session{harness: s, conn: conn, pid: conn.PgConn().PID()}
	}
	return s
}

// A session is a connection that executes one step at a time.
type session struct {
	*harness
	conn *pgx.Conn
	pid  uint32

	step chan error // of the current step; nil if there is none
	err  error      // of the last step that ended
}

// begin begins a step and returns once it has ended or waits for the other session.
func (s *session) begin(sql string) {
	s.Helper()
	if s.step != nil {
		s.Fatal("a session that waits was given another step")
	}
	step := make(chan error, 1)
	s.step = step
	go func() { step <- run(s.Context(), s.conn, sql) }()
	s.settle()
}

// settle waits until the current step has ended (true) or waits for the other session (false). Most steps end at once,
// and asking for locks is expensive for the server, so it asks after a moment.
func (s *session) settle() bool {
	s.Helper()
	for s.step != nil {
		select {
		case s.err = <-s.step:
			s.step = nil
		case <-time.After(time.Millisecond):
			if value[bool](s.T, s.observer, "select cardinality(pg_blocking_pids($1)) > 0", int32(s.pid)) {
				return false
			}
		}
	}
	return true
}

// mustEnd fails the test unless the last step has ended with that SQLSTATE.
func (s *session) mustEnd(what, state string) {
	s.Helper()
	if !s.settle() || sqlstate(s.err) != state || state == "" && s.err != nil {
		s.Fatalf("%s: waits %t, error %v; want SQLSTATE %q", what, s.step != nil, s.err, state)
	}
}

// mustWait fails the test unless the last step waits for the other session.
func (s *session) mustWait(what string) {
	s.Helper()
	if s.settle() {
		s.Fatalf("%s was to wait, and ended with %v", what, s.err)
	}
}
