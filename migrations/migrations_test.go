package migrations_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/migrations"
)

func TestNumbersComeInPairsWithoutGaps(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`^(\d{4})_([a-z][a-z0-9_]*)\.(up|down)\.sql$`)
	names, ways := map[int]string{}, map[int][]string{}
	for _, path := range paths {
		match := pattern.FindStringSubmatch(path)
		if match == nil {
			t.Errorf("%s is not named NNNN_name.up.sql or NNNN_name.down.sql", path)
			continue
		}
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		if ways[n] = append(ways[n], match[3]); names[n] != "" && names[n] != match[2] {
			t.Errorf("number %04d has two names, %s and %s", n, names[n], match[2])
		}
		names[n] = match[2]
	}
	for n := range len(ways) {
		if !slices.Equal(ways[n+1], []string{"down", "up"}) {
			t.Errorf("number %04d has %v, not one up and one down", n+1, ways[n+1])
		}
	}
	if got := migrations.Latest(); got != uint(len(ways)) {
		t.Errorf("the latest is %d, not %d", got, len(ways))
	}
}

func TestFilesLeaveTheirTransactionAlone(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`--.*|(?s:\$\$.*?\$\$)`) // and bodies of functions, which cannot control it
	control := regexp.MustCompile(
		`(?i)(^|;)\s*(begin|start\s+transaction|commit|end|rollback|savepoint)\b|\bconcurrently\b|\bvacuum\b\s*[^_]`,
	)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := control.FindString(comment.ReplaceAllString(string(text), "")); found != "" {
			t.Errorf("%s holds %q", path, strings.TrimSpace(found))
		}
	}
}
