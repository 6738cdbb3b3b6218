package testmain

import (
	"os"
	"testing"
)

// TestATMPDIRThatIsSetStays is not parallel, because it sets an environment variable.
func TestATMPDIRThatIsSetStays(t *testing.T) {
	const mine = "/somewhere"
	t.Setenv("TMPDIR", mine)
	if err := useMemory(); err != nil {
		t.Fatal(err)
	}
	if got := os.TempDir(); got != mine {
		t.Errorf("temporary files are in %s, want %s", got, mine)
	}
}

// TestTemporaryFilesAreInMemoryIfThereIsRoom is not parallel, because it sets an environment variable.
func TestTemporaryFilesAreInMemoryIfThereIsRoom(t *testing.T) {
	t.Setenv("TMPDIR", "")
	if err := useMemory(); err != nil {
		t.Fatal(err)
	}
	want := ""
	if room("/dev/shm") >= leastRoom && availableMemory() >= leastRoom {
		want = "/dev/shm"
	}
	if got := os.Getenv("TMPDIR"); got != want {
		t.Errorf("TMPDIR is %q, want %q", got, want)
	}
}
