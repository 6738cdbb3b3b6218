package faults_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
)

// A pooler is a PgBouncer in transaction mode.
type pooler struct {
	config pgbouncer.Config

	mu    sync.Mutex
	child *child
	url   string // of the database, through it
}

// newPooler starts a PgBouncer that leads to the primary.
func (s *clusterHarness) newPooler() *pooler {
	s.t.Helper()
	direct := s.cluster.Primary().URL()
	p := &pooler{config: pgbouncer.New(s.t, "transaction", 50)}
	p.url = p.config.Through(s.t, direct)
	s.must(p.config.Write(direct))
	s.must(p.start())
	s.supervise(p)
	_, err := p.current().awaitOutput(s.t.Context(), `(process up)`)
	s.must(err)
	return p
}

func (p *pooler) start() error {
	words, err := p.config.Command()
	if err != nil {
		return err
	}
	c, err := launch(&logBuffer{}, nil, words[0], words[1:]...)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.child = c
	}
	return err
}

// current returns the newest process.
func (p *pooler) current() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// maxPoolerEnds is how often a pooler is restarted.
const maxPoolerEnds = 20

// supervise restarts the pooler when it ends, until the test is over: PgBouncer 1.18 may exit with
// "server in bad state" when a cancel request meets a server that goes away.
func (s *clusterHarness) supervise(p *pooler) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for range maxPoolerEnds {
			select {
			case <-over:
				return
			case <-p.current().ended:
			}
			s.t.Logf("PgBouncer ended and is restarted; its last output:\n%s", lastLines(p.current().output.bytes()))
			if err := p.start(); err != nil {
				s.t.Error(err)
				return
			}
		}
		s.t.Error("PgBouncer ended too often")
	}()
	s.t.Cleanup(func() {
		close(over)
		<-ended
		stopChild(s.t, p.current(), syscall.SIGKILL)
	})
}

// pointTo makes the pooler lead to another server. Its clients stay connected.
func (p *pooler) pointTo(n *pgcluster.Node) error {
	return errors.Join(p.config.Write(n.URL()), p.current().signal(syscall.SIGHUP))
}

// behindAPooler runs replicas that know only the pooler, while the server behind it changes: at first it
// leads to a server that has become a standby and refuses writes.
func behindAPooler(t *testing.T, program string) {
	s := newRestrictedCluster(t, program)
	p := s.newPooler()
	s.serve(2, p.url, "--pooler-mode=transaction")
	u := s.underLoad("pooler")
	gap := u.breakAndMeasure("switchover behind the pooler", func(ctx context.Context) error {
		if err := s.cluster.Switchover(ctx); err != nil {
			return err
		}
		s.awaitReadOnly()
		return p.pointTo(s.cluster.Primary())
	})
	t.Logf("no grants during a switchover behind the pooler for %v", gap)
	gap = u.breakAndMeasure("kill -9 of the primary behind the pooler", func(ctx context.Context) error {
		return errors.Join(s.failOver(ctx), p.pointTo(s.cluster.Primary()))
	})
	t.Logf("no grants after a kill of the primary behind the pooler for %v", gap)
	u.checkHistory()
}

// awaitReadOnly waits until a replica has noticed that the server is a standby.
func (s *clusterHarness) awaitReadOnly() {
	s.eventually("a replica meets the standby", func() bool {
		return slices.ContainsFunc(s.replicas,
			func(c *child) bool { return bytes.Contains(c.output.bytes(), []byte("25006")) })
	})
}
