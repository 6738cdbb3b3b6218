package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// Main builds paddock, sets *path to its file, runs the tests, and exits with their code. A package with tests that run
// paddock calls it from its TestMain.
func Main(m *testing.M, path *string) { os.Exit(buildAndRun(m, path)) }

func buildAndRun(m *testing.M, path *string) (code int) {
	dir, err := os.MkdirTemp("", "paddock-program-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	*path = filepath.Join(dir, "paddock")
	if err := Build(context.Background(), *path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.M{M: m}.Run()
}
