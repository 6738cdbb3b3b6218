//go:build unix

package debs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestExposedProgramFindsItsLibrariesWhereverItIs(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	tree := Tree{Dir: filepath.Join(top, "before")}
	for name, text := range map[string]string{
		"usr/lib/x86_64-linux-gnu/libfence.so.1": "",
		"usr/sbin/fence":                         "#!/bin/sh\necho \"$0\"; echo \"$@\"; echo $$; echo \"$LD_LIBRARY_PATH\"; echo \"$FENCE_CONF\"\n",
	} {
		path := filepath.Join(tree.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Expose("usr/sbin/fence", "FENCE_CONF=$tree/etc/fence"); err != nil {
		t.Fatal(err)
	}
	after := filepath.Join(top, "after")
	if err := os.Rename(tree.Dir, after); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(after, "bin", "fence"), "a b", "c")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	program, err := filepath.EvalSymlinks(lines[0])
	if err != nil || program != filepath.Join(after, "usr/sbin/fence") {
		t.Errorf("the program is %s, %v", lines[0], err)
	}
	if pid := strconv.Itoa(cmd.ProcessState.Pid()); lines[1] != "a b c" || lines[2] != pid {
		t.Errorf("it printed %q; its process is %s", lines, pid)
	}
	if want := after + "/bin/../usr/lib/x86_64-linux-gnu"; lines[3] != want {
		t.Errorf("the libraries are in %s, want %s", lines[3], want)
	}
	if want := after + "/bin/../etc/fence"; lines[4] != want {
		t.Errorf("the variable is %s, want %s", lines[4], want)
	}
}

func TestComplaintIsTheFirstError(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]string{
		"W: old\nE: Unable to locate package fence\nE: more": "Unable to locate package fence",
		"dpkg-deb: error: not an archive\n":                  "dpkg-deb: error: not an archive",
		"":                                                   os.ErrClosed.Error(),
	} {
		if got := complaint(stderr, os.ErrClosed); got != want {
			t.Errorf("of %q: %q, want %q", stderr, got, want)
		}
	}
}
