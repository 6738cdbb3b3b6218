package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// nightly is the lock that the tests of paddock run use.
const nightly = "jobs:nightly"

// prepares returns paddock run for a process of its own, which is not started yet. Its
// command finds the way to another paddock in $PADDOCK.
func (d *desk) prepares(args ...string) *process {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	return d.prepared(exec.Command(self, append([]string{"run"}, args...)...), self)
}

// prepared returns a process that has what paddock run needs.
func (d *desk) prepared(cmd *exec.Cmd, self string) *process {
	p := &process{cmd: cmd, stdout: newTranscript(), stderr: newTranscript(), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), actAsPaddock+"=1", "PADDOCK="+self)
	for name, value := range d.env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	return p
}

// lets has paddock run something.
func (d *desk) lets(args ...string) *process {
	d.Helper()
	p := d.prepares(args...)
	p.run(d.T)
	return p
}

// ends has the process end with that exit code, and checks what it has said.
func (p *process) ends(t *testing.T, code int, words ...string) {
	t.Helper()
	if got := p.exit(t); got != code {
		t.Errorf("%q: exit code %d, want %d:\n%s%s", p.cmd.Args[1:], got, code, p.stdout, p.stderr)
	}
	for _, w := range words {
		if !strings.Contains(p.stderr.String(), w) {
			t.Errorf("%q is to say %q:\n%s", p.cmd.Args[1:], w, p.stderr)
		}
	}
}

// silent checks that paddock has said nothing; its command may have.
func (p *process) silent(t *testing.T) {
	t.Helper()
	if said := p.stderr.String(); strings.Contains(said, "paddock: ") {
		t.Errorf("%q has said:\n%s", p.cmd.Args[1:], said)
	}
}

// free checks that nobody has the lock, or waits for it, and returns it.
func (d *desk) free() lock.Lock {
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

func TestTheExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	for script, code := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": exitSignalled + 9, "kill -15 $$": exitSignalled + 15,
	} {
		p := d.lets(nightly, "--", "sh", "-c", script)
		p.ends(t, code)
		p.silent(t)
		d.free()
	}
}

func TestWhatCannotBeExecutedIsNotGrantedALock(t *testing.T) {
	t.Parallel()
	d, folder := sitDown(t), t.TempDir()
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
		d.lets(nightly, "--", command).ends(t, c.code, c.says)
		if l := d.free(); l.Revision != 0 {
			t.Errorf("%q: the lock was acquired for it", command)
		}
	}
	d.lets(nightly, "--", write("no-interpreter", "echo hello\n", 0o700)).ends(t, exitNotExecutable, "#!")
	d.lets(nightly, "--", write("bad-interpreter", "#!/no/such/shell\n", 0o700)).ends(t, exitNotFound, "interpreter")
	d.free()
}

// TestMistakesInRunningAreExplained has the service refuse the last of them.
func TestMistakesInRunningAreExplained(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.holds(lock.Acquire{Name: "uploads", Holder: "she", Mode: lock.Permit, Capacity: 2})
	for says, args := range map[string][]string{
		`expected "<command> ..."`:            {nightly},
		"run what?":                           {nightly, "--"},
		"give 0s to 9s":                       {"--kill-after=10s", nightly, "--", "/bin/sh"},
		"give 0s to 233":                      {"--ttl=1s", "--kill-after=5s", nightly, "--", "/bin/sh"},
		"--kill-after is -1s":                 {"--kill-after=-1s", nightly, "--", "/bin/sh"},
		"--ttl is 0s":                         {"--ttl=0s", nightly, "--", "/bin/sh"},
		"can't be used together":              {"--shared", "--permits=2", nightly, "--", "/bin/sh"},
		"--retry is -1s":                      {"--retry=-1s", nightly, "--", "/bin/sh"},
		"NAME: name has an invalid character": {"jobs nightly", "--", "/bin/sh"},
		"unknown flag --no-such-thing":        {"--no-such-thing", nightly, "--", "/bin/sh"},
		"--url: ":                             {"--url=here", nightly, "--", "/bin/sh"},
		"capacity_mismatch":                   {"--permits=3", "uploads", "--", "/bin/sh"},
	} {
		d.refuses(exitUsage, []string{says}, append([]string{"run"}, args...)...)
	}
	strict := serveHere(t, pgtest.URL(t), "--min-ttl=1m")
	d.refuses(exitUsage, []string{"--ttl: ttl_ms"}, "run", "--url", strict, nightly, "--", "/bin/sh")
	d.free()
}

func TestWhoHasTheLockIsSaid(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.holds(lock.Acquire{Name: nightly, Holder: "somebody else"})
	d.refuses(exitNotAcquired, []string{"somebody else has the lock"}, "run", nightly, "--", "/bin/sh")
	d.refuses(exitNotAcquired, []string{"somebody else has the lock"}, "run", "--wait=100ms", nightly, "--", "/bin/sh")
}

func TestAServiceThatIsNotThereIsAskedForAsLongAsOneWants(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.env["PADDOCK_URL"] = "http://127.0.0.1:1"
	d.refuses(exitUnreachable, []string{"connection refused"}, "run", "--retry=0s", nightly, "--", "/bin/sh")
	begun := time.Now()
	d.refuses(exitUnreachable, []string{"connection refused"}, "run", "--retry=300ms", nightly, "--", "/bin/sh")
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("it has given up after %v", took)
	}
}
