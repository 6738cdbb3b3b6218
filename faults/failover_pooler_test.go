package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgcluster"
)

// A pooler is a PgBouncer in transaction mode.
type pooler struct {
	program []string

	mu    sync.Mutex
	child *child
	dir   string
	port  int
	url   *url.URL // of the database, through it
}

// newPooler starts a PgBouncer that leads to the primary.
func (s *site) newPooler() *pooler {
	s.t.Helper()
	p := &pooler{program: s.findPgBouncer(), dir: s.t.TempDir(), port: s.freePort()}
	s.must(os.Chmod(filepath.Dir(p.dir), 0o711))
	direct, err := url.Parse(s.cluster.Primary().URL())
	s.must(err)
	password, _ := direct.User.Password()
	s.must(p.write("users", fmt.Sprintf("%q %q\n", direct.User.Username(), password)))
	s.must(p.leadTo(s.cluster.Primary()))
	s.must(p.start())
	s.supervise(p)
	_, err = p.now().await(s.t.Context(), `(process up)`)
	s.must(err)
	direct.Host = "127.0.0.1:" + strconv.Itoa(p.port)
	p.url = direct
	return p
}

func (p *pooler) start() error {
	c, err := launch(&journal{}, nil, p.program[0], append(slices.Clone(p.program[1:]), filepath.Join(p.dir, "pgbouncer.ini"))...)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.child = c
	}
	return err
}

// now is the process that runs, or did last.
func (p *pooler) now() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// maxPoolerEnds is how often a pooler is started again.
const maxPoolerEnds = 20

// supervise starts the pooler again when it has ended, until the test is over: PgBouncer
// 1.18 may end with "server in bad state" where a cancel request meets a server that goes
// away.
func (s *site) supervise(p *pooler) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for range maxPoolerEnds {
			select {
			case <-over:
				return
			case <-p.now().ended:
			}
			s.t.Logf("PgBouncer has ended, and is started again; it said last:\n%s", lastWords(p.now().said.bytes()))
			if err := p.start(); err != nil {
				s.t.Error(err)
				return
			}
		}
		s.t.Error("PgBouncer ends again and again")
	}()
	s.t.Cleanup(func() {
		close(over)
		<-ended
		s.ends(p.now(), syscall.SIGKILL)
	})
}

// findPgBouncer returns how to start it. It does not run as root.
func (s *site) findPgBouncer() []string {
	s.t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if errors.Is(err, exec.ErrNotFound) {
		path, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		s.t.Fatalf("PgBouncer is needed here; install it with: apt-get install pgbouncer (%v)", err)
	}
	if os.Geteuid() != 0 {
		return []string{path}
	}
	return []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=KILL", path}
}

// leadTo writes its settings, which it reads when it starts and after SIGHUP.
func (p *pooler) leadTo(n *pgcluster.Node) error {
	return p.write("pgbouncer.ini", fmt.Sprintf(`[databases]
%s = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 50
max_client_conn = 200
server_login_retry = 1
log_connections = 0
log_disconnections = 0
`, pgcluster.Database, n.Port(), p.port, filepath.Join(p.dir, "users")))
}

// write writes a file that PgBouncer can read and nobody else.
func (p *pooler) write(name, content string) error {
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil || os.Geteuid() != 0 {
		return err
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	return errors.Join(errUID, errGID, os.Chown(path, uid, gid), os.Chown(p.dir, uid, gid))
}

// follow has the pooler lead to another server. Its clients stay connected.
func (p *pooler) follow(n *pgcluster.Node) error {
	return errors.Join(p.leadTo(n), p.now().signal(syscall.SIGHUP))
}

// behindAPooler has a site's replicas know the pooler alone, while what it leads to
// changes: at first to a server that has become a standby, and refuses to write.
func behindAPooler(t *testing.T, program string) {
	s := newGuardedSite(t, program)
	p := s.newPooler()
	s.serve(2, p.url.String(), "--no-listen")
	u := s.underLoad("pooler")
	gap := u.blow("switchover behind the pooler", func(ctx context.Context) error {
		if err := s.cluster.Switchover(ctx); err != nil {
			return err
		}
		s.refusesToWrite()
		return p.follow(s.cluster.Primary())
	})
	t.Logf("nothing was granted during a switchover behind the pooler for: %v", gap)
	gap = u.blow("kill -9 of the primary behind the pooler", func(ctx context.Context) error {
		return errors.Join(s.failOver(ctx), p.follow(s.cluster.Primary()))
	})
	t.Logf("nothing was granted after a kill of the primary behind the pooler for: %v", gap)
	u.holds()
}

// refusesToWrite waits until a replica has been told that the server is a standby.
func (s *site) refusesToWrite() {
	s.eventually("a replica meets the standby", func() bool {
		return slices.ContainsFunc(s.replicas, func(c *child) bool { return bytes.Contains(c.said.bytes(), []byte("25006")) })
	})
}

func (s *site) freePort() int {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.must(listener.Close())
	return listener.Addr().(*net.TCPAddr).Port
}
