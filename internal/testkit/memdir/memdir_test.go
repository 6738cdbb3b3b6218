package memdir

import (
	"os"
	"strings"
	"testing"
)

// TestATMPDIRThatIsSetStays is not parallel, because it sets an environment variable.
func TestATMPDIRThatIsSetStays(t *testing.T) {
	const mine = "/somewhere"
	t.Setenv("TMPDIR", mine)
	if err := Use(); err != nil {
		t.Fatal(err)
	}
	if got := os.TempDir(); got != mine {
		t.Errorf("temporary files are in %s, want %s", got, mine)
	}
}

// TestTemporaryFilesAreInMemoryIfThereIsRoom is not parallel, because it sets an environment variable.
func TestTemporaryFilesAreInMemoryIfThereIsRoom(t *testing.T) {
	t.Setenv("TMPDIR", "")
	if err := Use(); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	inMemory := strings.Contains(string(mounts), " "+os.Getenv("TMPDIR")+" tmpfs ")
	if set := os.Getenv("TMPDIR") != ""; set != inMemory {
		t.Errorf("TMPDIR is %q, which is in memory: %t", os.Getenv("TMPDIR"), inMemory)
	}
	dir, err := os.MkdirTemp("", "memdir-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Error(err)
	}
}

func TestThereIsNoRoomWhereNoDirectoryCanBeMade(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/proc", "/nowhere"} { // /proc exists, and refuses even root
		if got := room(dir); got != 0 {
			t.Errorf("%s has room for %d bytes", dir, got)
		}
	}
	if room(t.TempDir()) == 0 {
		t.Error("a temporary directory has no room")
	}
}
