package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestStatementsPrepare has PostgreSQL read every statement of the package and of those below it against the real
// schema, so that a renamed column fails here and not in a request. Those of package row that are templates are
// prepared by its own tests.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	files, err := filepath.Glob("internal/*/sql/*.sql")
	own, errOwn := filepath.Glob("sql/*.sql")
	if err != nil || errOwn != nil || len(files) == 0 || len(own) == 0 {
		t.Fatalf("no statements: %v, %v", err, errOwn)
	}
	for _, file := range append(files, own...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if !strings.Contains(sourceBeside(t, file), `"`+name+`"`) {
			t.Errorf("%s is not used", file)
		}
		if strings.Contains(string(text), "{{") {
			continue
		}
		if _, err := conn.Prepare(t.Context(), file, string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// sourceBeside returns the Go files, tests left out, of the package whose statement the file has.
func sourceBeside(t *testing.T, file string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(file)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
