package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/usercache"
)

// TestMissingToolIsFetched fetches a small tool from this system's packages.
func TestMissingToolIsFetched(t *testing.T) {
	t.Parallel()
	cache := usercache.Folder{Path: filepath.Join(t.TempDir(), "cache")}
	wanted, _ := find("pgbouncer")
	for range 2 {
		path, err := wanted.fetch(t.Context(), cache)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "PgBouncer ") {
			t.Errorf("%s --version: %s, %v", path, out, err)
		}
		if !strings.HasPrefix(path, cache.Path) {
			t.Errorf("the program is %s", path)
		}
	}
}

func TestUnknownToolIsAnError(t *testing.T) {
	t.Parallel()
	if path, err := Find(t.Context(), "emacs"); err == nil {
		t.Errorf("found %s", path)
	}
}

func TestMissingPackageLeavesNothing(t *testing.T) {
	t.Parallel()
	cache := usercache.Folder{Path: filepath.Join(t.TempDir(), "cache")}
	wanted := tool{pkg: "paddock-no-such-package", program: "usr/bin/none"}
	_, err := wanted.fetch(t.Context(), cache)
	if err == nil || !strings.Contains(err.Error(), "paddock-no-such-package") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache.Path, "tool-paddock-no-such-package")); err == nil {
		t.Error("there is an entry")
	}
}
