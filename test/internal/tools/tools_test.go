//go:build unix

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/usercache"
)

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
