package fencing_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// A harness is a database with two sessions that tests drive step by step, as PostgreSQL's own
// isolation tester does, and a third connection that observes them.
type harness struct {
	*testing.T
	watch    *pgx.Conn
	sessions [2]*session
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	url := newDatabase(t)
	s := &harness{T: t, watch: connect(t, url)}
	for i := range s.sessions {
		conn := connect(t, url)
		must(t, conn, "set synchronous_commit = off") // no test here crashes the server
		s.sessions[i] = &session{harness: s, conn: conn, pid: conn.PgConn().PID()}
	}
	return s
}

// A session is a connection that runs one step at a time.
type session struct {
	*harness
	conn *pgx.Conn
	pid  uint32

	step chan error // of the running step; nil if there is none
	err  error      // of the last step that ended
}

// start begins a step and returns when it has ended or waits for the other session.
func (s *session) start(sql string) {
	s.Helper()
	if s.step != nil {
		s.Fatal("a session that waits was given another step")
	}
	step := make(chan error, 1)
	s.step = step
	go func() { step <- run(s.Context(), s.conn, sql) }()
	s.settle()
}

// settle returns true when the running step has ended, and false when it waits for the other
// session.
func (s *session) settle() bool {
	s.Helper()
	for s.step != nil {
		select {
		case s.err = <-s.step:
			s.step = nil
		default:
			if value[bool](s.T, s.watch, "select cardinality(pg_blocking_pids($1)) > 0", int32(s.pid)) {
				return false
			}
		}
	}
	return true
}

// mustEnd ends the test unless the last step has mustEnd, with that SQLSTATE.
func (s *session) mustEnd(what, state string) {
	s.Helper()
	if !s.settle() || sqlstate(s.err) != state || state == "" && s.err != nil {
		s.Fatalf("%s: waits %t, error %v; want SQLSTATE %q", what, s.step != nil, s.err, state)
	}
}

// mustWait ends the test unless the last step mustWait for the other session.
func (s *session) mustWait(what string) {
	s.Helper()
	if s.settle() {
		s.Fatalf("%s was to wait, and ended with %v", what, s.err)
	}
}
