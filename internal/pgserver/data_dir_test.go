package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInaccessibleDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	stranger := account{name: "user stranger", uid: 54321, gid: 54321, switches: true}
	open := t.TempDir()
	if err := os.Chmod(filepath.Dir(open), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := stranger.checkAccess(filepath.Join(open, "not", "there", "yet")); err != nil {
		t.Error(err)
	}
	closed := filepath.Join(open, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	err := stranger.checkAccess(filepath.Join(closed, "data"))
	if err == nil || !strings.Contains(err.Error(), "user stranger, which cannot enter "+closed) {
		t.Errorf("the error is %v", err)
	}
}

func TestSweepRemovesOnlyUnclaimedDirectories(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	me := account{uid: uint32(os.Geteuid())}
	for _, name := range []string{"abandoned", "claimed", "unclaimed", "other"} {
		if err := os.Mkdir(filepath.Join(base, temporaryPrefix+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	claimed := claims(t, filepath.Join(base, temporaryPrefix+"claimed"))
	abandoned := claims(t, filepath.Join(base, temporaryPrefix+"abandoned"))
	if err := abandoned.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(base, temporaryPrefix+"other"), filepath.Join(base, "other")); err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context(), base, me); err != nil {
		t.Fatal(err)
	}
	if err := claimed.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, strings.TrimPrefix(e.Name(), temporaryPrefix))
	}
	if got := strings.Join(left, " "); got != "other claimed unclaimed" {
		t.Errorf("left: %s", got)
	}
}

func claims(t *testing.T, dir string) *os.File {
	t.Helper()
	file, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var log logTail
	for range tailSize {
		if _, err := log.Write([]byte("early ")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Write([]byte("last words\n")); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); len(got) > tailSize || !strings.HasSuffix(got, "early last words") {
		t.Errorf("kept %d bytes: %q", len(got), got)
	}
}
