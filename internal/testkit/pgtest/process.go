package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is this process's server. A test has no other way to what the tests
// before it have started, hence a variable of the package, in tests only.
var shared testServer

// A testServer is the server of a test testServer, found when the first test asks.
type testServer struct {
	once sync.Once
	s    *server
	err  error
}

func (p *testServer) server(t testing.TB) *server {
	t.Helper()
	p.once.Do(func() {
		if p.s, p.err = find(context.Background()); p.err == nil {
			fmt.Fprintf(os.Stderr, "pgtest: %s\n", p.s.what)
		}
	})
	if p.err != nil {
		t.Fatalf("pgtest: %v", p.err)
	}
	return p.s
}

// stop ends the server if a test had it started, and if it is ours to end.
func (p *testServer) stop(ctx context.Context) error {
	p.once.Do(func() {}) // from now on nobody starts one
	if p.s == nil {
		return nil
	}
	return p.s.stop(ctx)
}
