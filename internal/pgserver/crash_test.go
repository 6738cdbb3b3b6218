package pgserver_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

func TestCommittedDataSurvivesKill(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Options{})
	url := s.URL("postgres")
	insertRow(t, s, "postgres")
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	<-s.Done()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, s, "postgres", "select n from kept"); got != 42 || s.URL("postgres") != url {
		t.Errorf("%d at %s", got, s.URL("postgres"))
	}
	pid := postmaster(t, s.Dir())
	if err := s.Restart(t.Context()); err != nil || postmaster(t, s.Dir()) != pid {
		t.Errorf("Restart affected a running server: %v", err)
	}
}

func TestReusedProcessIDIsNotMistakenForAServer(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Options{})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	// The process ID file of the dead server now names a living process.
	path := filepath.Join(s.Dir(), "data", "postmaster.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getppid())+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNextStartTakesOverFromADeadProcess(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	killServer(t, dir)
	s := start(t, pgserver.Options{Dir: dir, Database: "kept"})
	if got := query[int](t, s, "kept", "select n from kept"); got != 42 {
		t.Errorf("got %d", got)
	}
}

// killServer runs a server in dir from another process, kills that process, and returns the server's process ID.
func killServer(t *testing.T, dir string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "committed\n" {
		t.Errorf("the child said %q: %v", line, err)
	}
	pid = postmaster(t, dir)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return pid
}

// postmaster returns the process ID of the server in dir.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
