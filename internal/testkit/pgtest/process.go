//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the server of this process. It is a package variable because tests have no other way to share it.
var shared testServer

// A testServer is the server of a test process, found on first use.
type testServer struct {
	main bool // TestMain calls Main or M.Run, which can also keep the shared server
	once sync.Once
	s    *server
	err  error
}

func (p *testServer) server(t testing.TB) *server {
	t.Helper()
	if !p.main {
		t.Fatal("pgtest: no TestMain calls pgtest.Main; see the documentation of package pgtest")
	}
	p.once.Do(func() {
		if p.s, p.err = find(context.Background()); p.err == nil {
			fmt.Fprintf(os.Stderr, "pgtest: %s\n", p.s.description)
		}
	})
	if p.err != nil {
		exitWithout(p.err)
	}
	return p.s
}

// stop leaves the server if a test has found one.
func (p *testServer) stop(ctx context.Context) error {
	p.once.Do(func() {}) // no server is started from now on
	if p.s == nil {
		return nil
	}
	return errors.Join(p.s.close(ctx), p.s.stop(ctx))
}

// exitWithout ends the tests of this process, which has no PostgreSQL. The error is for all of them, so it is reported
// once and not by every test.
func exitWithout(err error) {
	fmt.Fprintf(os.Stderr, "pgtest: no test can run without PostgreSQL: %v\n", err)
	os.Exit(1)
}
