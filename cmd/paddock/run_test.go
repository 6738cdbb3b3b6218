package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// nightly is the lock of the tests of paddock run.
const nightly = "jobs:nightly"

// prepareRun returns a process of paddock run, not started yet. Its command finds this binary in $PADDOCK.
func (d *harness) prepareRun(args ...string) *process {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	return d.prepare(exec.Command(self, append([]string{"run"}, args...)...), self)
}

// prepare sets the environment of a process, without variables of Paddock that this process has.
func (d *harness) prepare(cmd *exec.Cmd, self string) *process {
	p := &process{proctest.New(cmd)}
	ours := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PADDOCK_") })
	p.Cmd.Env = append(ours, actAsPaddock+"=1", "PADDOCK="+self)
	for name, value := range d.env {
		p.Cmd.Env = append(p.Cmd.Env, name+"="+value)
	}
	return p
}

// startRun starts paddock run.
func (d *harness) startRun(args ...string) *process {
	d.Helper()
	p := d.prepareRun(args...)
	p.Start(d.T)
	return p
}

// expectExit waits for the exit code and checks it and the messages.
func (p *process) expectExit(t *testing.T, code int, words ...string) {
	t.Helper()
	if got := p.Exit(t); got != code {
		t.Errorf("%q: exit code %d, want %d:\n%s%s", p.Cmd.Args[1:], got, code, p.Stdout, p.Stderr)
	}
	for _, w := range words {
		if !strings.Contains(p.Stderr.String(), w) {
			t.Errorf("%q does not contain %q:\n%s", p.Cmd.Args[1:], w, p.Stderr)
		}
	}
}

// expectNoMessages checks that paddock itself has written no message.
func (p *process) expectNoMessages(t *testing.T) {
	t.Helper()
	if said := p.Stderr.String(); strings.Contains(said, "paddock: ") {
		t.Errorf("%q wrote:\n%s", p.Cmd.Args[1:], said)
	}
}

// expectFree checks that the lock is free and has no waiters, and returns it.
func (d *harness) expectFree() lock.Lock {
	d.Helper()
	l, err := d.locks.Lock(d.Context(), nightly)
	if err != nil {
		d.Fatal(err)
	}
	if l.State != lock.Free || l.Waiters != 0 {
		d.Errorf("the lock is %s, and %d wait for it", l.State, l.Waiters)
	}
	return l
}

func TestRunExitsWithTheCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for script, code := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": exitSignalled + 9, "kill -15 $$": exitSignalled + 15,
	} {
		p := d.startRun(nightly, "--", "sh", "-c", script)
		p.expectExit(t, code)
		p.expectNoMessages(t)
		d.expectFree()
	}
}

func TestNoLockIsAcquiredForWhatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	d, folder := newHarness(t), t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write("plain", "echo hello\n", 0o600)
	d.env["PATH"] = folder + ":" + os.Getenv("PATH")
	for command, c := range map[string]struct {
		code int
		says string
	}{
		"no-such-command":         {exitNotFound, "not found in $PATH"},
		"":                        {exitNotFound, "not found in $PATH"},
		folder + "/no-such-thing": {exitNotFound, "not found"},
		plain + "/below":          {exitNotExecutable, "not a directory"},
		plain:                     {exitNotExecutable, "permission denied"},
		"plain":                   {exitNotExecutable, "permission denied"},
		folder:                    {exitNotExecutable, "is a directory"},
	} {
		d.startRun(nightly, "--", command).expectExit(t, c.code, c.says)
		if l := d.expectFree(); l.Revision != 0 {
			t.Errorf("%q: the lock was acquired for it", command)
		}
	}
	d.startRun(nightly, "--", write("no-interpreter", "echo hello\n", 0o700)).expectExit(t, exitNotExecutable, "#!")
	d.startRun(nightly, "--", write("bad-interpreter", "#!/no/such/shell\n", 0o700)).expectExit(t, exitNotFound,
		"interpreter")
	d.expectFree()
}
