package fencing_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// A stage is a database with two sessions that are led step by step, as by
// PostgreSQL's own isolation tester, and a third that watches them.
type stage struct {
	*testing.T
	watch    *pgx.Conn
	sessions [2]*session
}

func raise(t *testing.T) *stage {
	t.Helper()
	url := bank(t)
	s := &stage{T: t, watch: connect(t, url)}
	for i := range s.sessions {
		conn := connect(t, url)
		must(t, conn, "set synchronous_commit = off") // nobody crashes here
		s.sessions[i] = &session{stage: s, conn: conn, pid: conn.PgConn().PID()}
	}
	return s
}

// A session is a connection on which one step at a time is under way.
type session struct {
	*stage
	conn *pgx.Conn
	pid  uint32

	step chan error // of the step under way; nil if there is none
	err  error      // of the last step that ended
}

// does begins a step and returns once it has ended or waits for the other session.
func (s *session) does(sql string) {
	s.Helper()
	if s.step != nil {
		s.Fatal("a session that waits was given another step")
	}
	step := make(chan error, 1)
	s.step = step
	go func() { step <- run(s.Context(), s.conn, sql) }()
	s.settle()
}

// settle returns once the step under way has ended, true, or waits for the other
// session, false.
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

// ended ends the test unless the last step has ended, with that SQLSTATE.
func (s *session) ended(what, state string) {
	s.Helper()
	if !s.settle() || sqlstate(s.err) != state || state == "" && s.err != nil {
		s.Fatalf("%s: waits %t, error %v; want SQLSTATE %q", what, s.step != nil, s.err, state)
	}
}

// waits ends the test unless the last step waits for the other session.
func (s *session) waits(what string) {
	s.Helper()
	if s.settle() {
		s.Fatalf("%s was to wait, and ended with %v", what, s.err)
	}
}
