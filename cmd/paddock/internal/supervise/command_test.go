package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The variables that make this test binary a supervisor: the script of its command, and when its lease is lost.
const (
	scriptVariable = "SUPERVISE_TEST_SCRIPT"
	lostVariable   = "SUPERVISE_TEST_LOST_AFTER"
)

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(superviseScript(script))
	}
	os.Exit(m.Run())
}

// A testLease is lost at its deadline.
type testLease struct {
	done     chan struct{}
	deadline time.Time
}

func (l *testLease) Done() <-chan struct{} { return l.done }

func (l *testLease) Deadline() time.Time { return l.deadline }

func (l *testLease) Err() error {
	select {
	case <-l.done:
		return errors.New("lost")
	default:
		return nil
	}
}

// superviseScript supervises a shell, and prints the result.
func superviseScript(script string) int {
	lease := &testLease{done: make(chan struct{}), deadline: time.Now().Add(time.Hour)}
	if after, err := time.ParseDuration(os.Getenv(lostVariable)); err == nil && after == 0 {
		close(lease.done)
	} else if err == nil {
		lease.deadline = time.Now().Add(after)
		time.AfterFunc(after, func() { close(lease.done) })
	}
	signals, stderr := Listen(), NewAsyncStderr(os.Stderr)
	defer stderr.Close()
	path, err := LookPath("sh", os.Getenv("PATH"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c := &Command{
		Path: path, Args: []string{"sh", "-c", script}, Env: os.Environ(),
		Lease: lease, KillAfter: 5 * time.Second, Signals: signals, Stderr: stderr,
	}
	result, err := c.Run()
	fmt.Printf("%v, lost: %v, error: %v\n", result, result.Lost, err)
	return result.ExitCode()
}

func TestRunReturnsHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	const goOn = "while :; do sleep 0.5; done"
	for name, c := range map[string]struct {
		script, lostAfter, want string
		code                    int
	}{
		"exit code":                {"exit 3", "", "exit code 3, lost: <nil>, error: <nil>", 3},
		"signal":                   {"kill -KILL $$", "", "SIGKILL, lost: <nil>, error: <nil>", ExitSignalled + 9},
		"lost lease":               {goOn, "1s", "SIGTERM, lost: lost, error: <nil>", ExitSignalled + 15},
		"lost lease, own exit":     {"trap 'exit 4' TERM; " + goOn, "2s", "exit code 4, lost: lost, error: <nil>", 4},
		"lease that is lost early": {goOn, "0s", "error: lost", 0},
		"descendant":               {"(sleep 0.1; echo descendant) & exit 5", "", "descendant", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			supervisor := exec.CommandContext(t.Context(), os.Args[0])
			supervisor.Env = append(os.Environ(), scriptVariable+"="+c.script, lostVariable+"="+c.lostAfter)
			output, err := supervisor.Output()
			if !strings.Contains(string(output), c.want) {
				t.Errorf("output %q, want %q (%v)", output, c.want, err)
			}
			if code := supervisor.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

func TestLookPathFindsWhatAShellWouldExecute(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o700, "plain": 0o600} {
		if err := os.WriteFile(folder+"/"+name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := LookPath("script", "/nowhere:"+folder); path != folder+"/script" || err != nil {
		t.Errorf("%s, %v", path, err)
	}
	for name, code := range map[string]int{"plain": ExitNotExecutable, "missing": ExitNotFound, "": ExitNotFound} {
		var start *StartError
		if path, err := LookPath(name, folder); !errors.As(err, &start) || start.ExitCode != code {
			t.Errorf("%q: %s, %v, want exit code %d", name, path, err, code)
		}
	}
}
