package shell_test

import (
	"testing"

	"github.com/paddock-lock/paddock/test/internal/program"
)

// paddock is the program that all tests of this process run. It is a package variable because tests have no other way
// to share it.
var paddock program.Built

func TestMain(m *testing.M) { paddock.Main(m) }

// output runs paddock, which must succeed, and returns what it prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	p := paddock.Start(t, args...)
	if code := p.Exit(t); code != 0 || p.Stderr.String() != "" {
		t.Fatalf("paddock %q: exit code %d:\n%s%s", args, code, p.Stdout, p.Stderr)
	}
	return p.Stdout.String()
}
