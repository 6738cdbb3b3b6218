package pgbench

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestReadParsesAndRemovesALog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log  string
		want []time.Duration
		bad  bool
	}{
		"two":        {"0 1 233 0 1700000000 5\n3 9 1044 0 1700000000 9\n", []time.Duration{233 * time.Microsecond, 1044 * time.Microsecond}, false},
		"none":       {"", nil, false},
		"incomplete": {"0 1 233 0 1700000000 5\n3 9\n", nil, true},
		"no number":  {"0 1 skipped 0 1700000000 5\n", nil, true},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := read(path)
		if !slices.Equal(got, c.want) || (err != nil) != c.bad {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the log was not removed", name)
		}
	}
}
