package deployment_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

const (
	sessionTTL   = 3 * time.Second
	sessionGrace = time.Second
)

// acquiresThree is a command of paddock session: it acquires three locks, says so, and goes on working.
const acquiresThree = `for n in a b c; do
	"$PADDOCK" acquire $n -o json >/dev/null || exit 9
done
echo "ready $$"
while :; do sleep 0.5; done`

// A sessionHolder is paddock session as a process, with its session and its locks.
type sessionHolder struct {
	*proctest.Process
	session lock.SessionInfo
	worker  int // the process of its command
	tokens  map[string]lock.Token
}

// startHolder starts a holder that reaches the service at base.
func (s *fixture) startHolder(base string) sessionHolder {
	s.Helper()
	program := built.Path(s.T)
	cmd := exec.Command(program, "session", "--url", base, "--holder", "holder", "--ttl", sessionTTL.String(),
		"--grace", sessionGrace.String(), "--", "sh", "-c", acquiresThree)
	cmd.Env = append(os.Environ(), "PADDOCK="+program)
	h := sessionHolder{Process: proctest.New(cmd), tokens: map[string]lock.Token{}}
	h.Start(s.T)
	worker, err := strconv.Atoi(h.Stdout.Await(s.T, `ready (\d+)`))
	s.must(err)
	h.worker = worker
	s.Cleanup(func() { _ = syscall.Kill(worker, syscall.SIGKILL) }) // it may have ended
	page, err := s.replicas[1].Sessions(s.Context(), paddock.SessionQuery{Holder: "holder"})
	s.must(err)
	if len(page.Items) != 1 || page.Items[0].Leases != 3 {
		s.Fatalf("the sessions are %+v", page.Items)
	}
	h.session = page.Items[0]
	for _, name := range []string{"a", "b", "c"} {
		l, err := s.replicas[1].Lock(s.Context(), name)
		s.must(err)
		h.tokens[name] = l.Token
		_, err = s.write(name, l.Token)
		s.must(err)
	}
	return h
}

// write writes under the token of the lock, as the work of its holder does.
func (s *fixture) write(name string, token lock.Token) (lock.FencedValue, error) {
	return s.replicas[0].WriteFenced(s.Context(), lock.FencedWrite{Key: "result:" + name, Lock: name, Token: token, Value: []byte("1")})
}

// TestALostHolderOfASessionLosesItsLocksTogether, to the calls that wait for them at either replica; and what it
// writes later is refused.
func TestALostHolderOfASessionLosesItsLocksTogether(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(*fixture, sessionHolder, *tcpproxy.Proxy){
		"paused": func(s *fixture, h sessionHolder, _ *tcpproxy.Proxy) {
			s.must(h.Cmd.Process.Signal(syscall.SIGSTOP))
		},
		"killed":  func(s *fixture, h sessionHolder, _ *tcpproxy.Proxy) { h.Signal(s.T, syscall.SIGKILL) },
		"cut off": func(_ *fixture, _ sessionHolder, network *tcpproxy.Proxy) { network.Stall() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, pgtest.URL(t))
			network := tcpproxy.New(t, strings.TrimPrefix(s.replicas[0].base, "http://"))
			h := s.startHolder("http://" + network.Address)
			var next []*caller
			for i, name := range []string{"a", "b", "c"} {
				next = append(next, s.startAcquire(patient{s.replicas[i%2]},
					lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "next"}))
			}
			lose(s, h, network)
			var ended time.Time
			for _, c := range next {
				c.expectAnswer()
				s.must(c.err)
				g := c.grant
				if g.Token <= h.tokens[g.Name] {
					t.Errorf("%s was granted with token %d after %d", g.Name, g.Token, h.tokens[g.Name])
				}
				if ended.IsZero() || g.AcquiredAt.Before(ended) {
					ended = g.AcquiredAt
				}
				if _, err := s.write(g.Name, h.tokens[g.Name]); !errors.Is(err, lock.ErrStaleToken) {
					t.Errorf("a late write of the holder under %s: %v", g.Name, err)
				}
				if _, err := s.write(g.Name, g.Token); err != nil {
					t.Errorf("a write of the next holder under %s: %v", g.Name, err)
				}
			}
			s.expectExpired(h, ended)
			switch how {
			case "paused":
				s.must(h.Cmd.Process.Signal(syscall.SIGCONT))
				fallthrough
			case "cut off":
				if code := h.Exit(t); code != 76 {
					t.Errorf("the exit code is %d, want 76 for a lost session", code)
				}
				await.Until(t, "the work is stopped", func() bool { return syscall.Kill(h.worker, 0) != nil })
			}
		})
	}
}

// A patient service repeats an acquire while it is unavailable, as on a machine on which a commit takes a second.
type patient struct{ paddock.Service }

func (p patient) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	for {
		g, err := p.Service.Acquire(ctx, a)
		if !errors.Is(err, lock.ErrUnavailable) || ctx.Err() != nil {
			return g, err
		}
	}
}

// expectExpired fails the test unless the session ended by its TTL and grace, and its leases then: not after the first
// of them was granted to another.
func (s *fixture) expectExpired(h sessionHolder, taken time.Time) {
	s.Helper()
	i, err := s.replicas[1].Session(s.Context(), h.session.Ref)
	s.must(err)
	if i.Ended != lock.Expired || i.Leases != 0 || taken.Before(i.EndedAt) || i.EndedAt.Before(h.session.ExpiresAt.Add(sessionGrace)) {
		s.Errorf("the session was %+v and is %+v; its first lock was taken at %v", h.session, i, taken)
	}
	for _, name := range []string{"a", "b", "c"} {
		page, err := s.replicas[1].Events(s.Context(), paddock.EventQuery{Names: []string{name}, Kinds: []lock.Kind{lock.Expired}})
		s.must(err)
		if len(page.Items) != 1 || page.Items[0].Token != h.tokens[name] || page.Items[0].Reason != "session expired" {
			s.Errorf("the lease of %s ended with %+v", name, page.Items)
		}
	}
}
