package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// paddockVariables returns the PADDOCK_ variables of a printed environment.
func paddockVariables(printed string) map[string]string {
	vars := map[string]string{}
	for line := range strings.Lines(printed) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "PADDOCK_") &&
			name != actAsPaddock {
			vars[name] = value
		}
	}
	return vars
}

func TestCommandGetsItsLeaseInTheEnvironment(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for name, value := range map[string]string{
		"PADDOCK_LOCK": "another", "PADDOCK_FENCING_TOKEN": "0", "PADDOCK_SLOT": "7", "PADDOCK_LEASE_ID": uuid.NewString(),
		"PADDOCK_EXPIRES_AT": "noon", "PADDOCK_LOCKS": "another more", "PADDOCK_FENCING_TOKENS": "another=0", "PADDOCK_SLOTS": "another=7",
		"PADDOCK_TASK": "outer", "OF_NO_CONCERN": "x=y",
	} {
		d.env[name] = value
	}
	for flags, want := range map[string]map[string]string{
		"--holder=she": {"PADDOCK_LOCK": nightly, "PADDOCK_LEASE_HOLDER": "she", "PADDOCK_URL": d.base},
		"--capacity=3": {"PADDOCK_LOCK": nightly, "PADDOCK_LEASE_HOLDER": "me", "PADDOCK_URL": d.base, "PADDOCK_SLOT": "1",
			"PADDOCK_SLOTS": nightly + "=1"},
	} {
		p := d.startRun(flags, nightly, "--", "env")
		p.expectExit(t, exitOK)
		want["PADDOCK_HOLDER"] = "me" // unchanged
		want["PADDOCK_LOCKS"], want["PADDOCK_FENCING_TOKEN"] = nightly, fmt.Sprint(d.expectFree().Token)
		want["PADDOCK_FENCING_TOKENS"] = nightly + "=" + want["PADDOCK_FENCING_TOKEN"]
		got := paddockVariables(p.Stdout.String())
		if task := got["PADDOCK_TASK"]; !strings.HasPrefix(task, "outer.") || len(task) <= len("outer.") {
			t.Errorf("%s: the command is of task %q, want a part of outer", flags, task)
		}
		if delete(got, "PADDOCK_TASK"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the command has %v, want %v", flags, got, want)
		}
		if !strings.Contains(p.Stdout.String(), "\nOF_NO_CONCERN=x=y\n") {
			t.Errorf("the rest of the environment has changed:\n%s", p.Stdout)
		}
	}
}

func TestArgumentsArePassedOnUnchanged(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun("--ttl", "1m", nightly, "--", "printf", "<%s>", "--ttl", "a,b", "--", "", "-h", "$x *", `\`)
	p.expectExit(t, exitOK)
	if got, want := p.Stdout.String(), `<--ttl><a,b><--><><-h><$x *><\>`; got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
	d.startRun(nightly, "sh", "-c", "exit 5").expectExit(t, 5)
}

// TestCommandInheritsStandardInputItself checks that the command leaves unread input in the file.
func TestCommandInheritsStandardInputItself(t *testing.T) {
	t.Parallel()
	d, path := newHarness(t), filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte("first second"), 0o600); err != nil {
		t.Fatal(err)
	}
	input, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, input)
	p := d.prepareRun(nightly, "--", "dd", "bs=6", "count=1", "status=none")
	p.Cmd.Stdin = input
	p.Start(t)
	p.expectExit(t, exitOK)
	rest, err := io.ReadAll(input)
	if err != nil || p.Stdout.String() != "first " || string(rest) != "second" {
		t.Errorf("it read %q and left %q, %v", p.Stdout, rest, err)
	}
}

// parentAndChildScript prints the signals that parent and child get. The child is in the foreground of the parent's
// shell: for background commands a shell ignores some signals.
const parentAndChildScript = `trap 'echo the elder' %[1]s
sh -c 'trap "echo the younger; exit" %[1]s; echo ready; ` + goesOn + `'
exit 5`

func TestSignalsArePassedOnToTheProcessGroup(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for s, name := range map[syscall.Signal]string{
		syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
		syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", syscall.SIGWINCH: "WINCH",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := d.startRun("test:"+name, "--", "sh", "-c", fmt.Sprintf(parentAndChildScript, name))
			p.Stdout.Await(t, `(ready)`)
			if err := p.Cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			p.expectExit(t, 5)
			p.expectNoMessages(t)
			if got := p.Stdout.String(); got != "ready\nthe younger\nthe elder\n" {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestSecondSignalIsPassedOnToo(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.startRun(nightly, "--", "sh", "-c",
		`n=0; trap 'n=$((n+1)); echo got $n; [ $n -lt 3 ] || exit 6' INT; echo got 0; `+goesOn)
	for _, heard := range []string{"0", "1", "2"} {
		p.Stdout.Await(t, `(got `+heard+`)`)
		if err := p.Cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	p.expectExit(t, 6)
	d.expectFree()
}

// TestIgnoredSignalsStayIgnored ignores signals as nohup does.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"HUP", "INT", "HUP INT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			p := d.prepareIgnoring(name, `jobs:nightly -- sh -c 'for s in `+name+`; do kill -$s $$ $PPID; done
				echo ready; read line; exit 3'`)
			hold, err := p.Cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			p.Start(t)
			p.Stdout.Await(t, `(ready)`)
			mustClose(t, hold)
			p.expectExit(t, 3)
			p.expectNoMessages(t)
		})
	}
}

// prepareIgnoring prepares a paddock run, with arguments for a shell, that inherits signals as ignored.
func (d *harness) prepareIgnoring(signals, args string) *process {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	return d.prepare(exec.Command("sh", "-c", "trap '' "+signals+"\n exec \"$PADDOCK\" run "+args), self)
}
