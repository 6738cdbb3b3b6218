package pgserver_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	pid := killServer(t, dir)
	eventually(t, "the orphan to end", func() bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return errors.Is(err, fs.ErrNotExist) || err == nil && !strings.Contains(string(line), dir)
	})
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was not shut down cleanly: %v", err)
	}
}
