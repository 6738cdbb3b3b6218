//go:build unix

package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// A Built is paddock, built by the first test that runs it. A package with such tests has one for all, and calls its
// Main from TestMain. Its zero value works.
type Built struct {
	once sync.Once
	dir  string // empty before the first use
	err  error
}

// Path returns the path of the program.
func (b *Built) Path(t testing.TB) string {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "paddock-program-"); b.err == nil {
			b.err = Build(context.Background(), filepath.Join(b.dir, "paddock"))
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.dir, "paddock")
}

// Main runs the tests of a package, removes the program, and exits.
func (b *Built) Main(m *testing.M) {
	code := pgtest.M{M: m}.Run()
	if err := os.RemoveAll(b.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start starts paddock. It is killed when the test ends.
func (b *Built) Start(t testing.TB, args ...string) *proctest.Process {
	t.Helper()
	p := proctest.New(exec.Command(b.Path(t), args...))
	p.Start(t)
	return p
}

// Serve starts paddock serve on a free port, and returns its base URL, too.
func (b *Built) Serve(t testing.TB, databaseURL string, args ...string) (*proctest.Process, string) {
	t.Helper()
	p := b.Start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", databaseURL, "--allow-hold"}, args...)...)
	return p, "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
}
