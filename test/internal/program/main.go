package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
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
