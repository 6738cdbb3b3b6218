package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestStatementsPrepare has PostgreSQL read every statement against the real
// schema, so that a renamed column fails here and not in a request.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no statements: %v", err)
	}
	source, err := os.ReadFile("statements.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if _, err := conn.Prepare(t.Context(), name, string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if !strings.Contains(string(source), `statement("`+name+`")`) {
			t.Errorf("%s is used by nobody", file)
		}
	}
}
