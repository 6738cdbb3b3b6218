package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-lock/paddock/lock"
)

// The scripts print text that is not a part of the command line, which the terminal shows, too. waitScript has no
// children, since a shell that is about to fork cannot be stopped, and does not sleep, since a shell checks for
// signals just before that.
const (
	waitScript = `"$PADDOCK" run --ttl 9s jobs:nightly -- sh -c ' ` +
		`trap "echo caught: \$((6*7)); exit 9" INT; trap "echo goes on: \$((6*7))" CONT; ` +
		`echo ready: $((6*7)); while :; do :; done'`
	echoScript = `"$PADDOCK" run jobs:nightly -- sh -c 'echo ready: $((6*7)); exec sed -u "s/^/< /"'`
)

func TestCommandIsInTheForeground(t *testing.T) {
	t.Parallel()
	k := newHarness(t).startShell()
	k.typeAndAwait(waitScript+"\n", "ready: 42")
	k.typeAndAwait(ctrlC, `caught: 42\r\n(?s:.*)\? $`)
	k.typeAndAwait("echo code: $?\n", "code: 9")
	k.typeAndAwait(echoScript+"\n", "ready: 42")
	k.typeAndAwait("hello\n", "< hello")
	k.typeAndAwait(ctrlD, `\? $`)
	k.typeAndAwait("echo code: $?\n", "code: 0")
	k.exitShell()
}

func TestStoppedCommandContinues(t *testing.T) {
	t.Parallel()
	k := newHarness(t).startShell()
	k.typeAndAwait(echoScript+"\n", "ready: 42")
	for range 3 {
		k.typeAndAwait("one\n", "< one")
		k.typeAndAwait(ctrlZ, `Stopped(?s:.*)\? $`)
		k.typeAndAwait("echo $((6*7))\n", "42")
		k.typeAndAwait("fg\n", "PADDOCK")
		k.typeAndAwait("two\n", "< two")
	}
	k.typeAndAwait(ctrlD, `\? $`)
	k.exitShell()
}

// TestACandidateIsStoppedAndContinuedAfterItsFirstTerm as any job: it waits to be elected again, and is.
func TestACandidateIsStoppedAndContinuedAfterItsFirstTerm(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	k := d.startShell()
	k.typeAndAwait("$PADDOCK lead --holder a "+nightly+" -- sleep 1000\n", "leading "+nightly)
	d.enqueue(lock.Acquire{Locks: lock.One(nightly), Holder: "b"})
	d.revoke("a drill")
	k.Stdout.Await(t, "(waiting to be elected again)")
	k.typeAndAwait(ctrlZ, `Stopped(?s:.*)\? $`)
	k.typeAndAwait("fg\n", "lead --holder a")
	d.revoke("the drill is over")
	k.Stdout.Await(t, "(leading "+nightly+")")
	k.typeAndAwait(ctrlC, `\? $`)
	k.exitShell()
}

// TestStoppedCommandThatLosesItsLeaseIsNotContinued stops paddock together with its command, so the lease is not
// renewed.
func TestStoppedCommandThatLosesItsLeaseIsNotContinued(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	k := d.startShell()
	k.typeAndAwait(waitScript+"\n", "ready: 42")
	k.typeAndAwait(ctrlZ, `Stopped(?s:.*)\? $`)
	d.awaitEvent(nightly, lock.Expired, "me")
	k.typeAndAwait("fg 2>/dev/null\n", `was stopped \(SIGKILL\)(?s:.*)\? $`)
	if shown := k.Stdout.String(); strings.Contains(shown, "goes on: 42") {
		t.Errorf("it has run again:\n%s", shown)
	}
	k.typeAndAwait("echo code: $?\n", "code: 76")
	k.exitShell()
}

// TestJobControlInAPipeline lets another process read the command's output, which may need the terminal.
func TestJobControlInAPipeline(t *testing.T) {
	t.Parallel()
	k := newHarness(t).startShell()
	k.typeAndAwait(waitScript+" | cat\n", "ready: 42")
	k.typeAndAwait(ctrlZ, `Stopped(?s:.*)\? $`)
	k.typeAndAwait("fg\n", "goes on: 42")
	k.typeAndAwait(ctrlC, `\? $`)
	k.typeAndAwait("echo one | "+`"$PADDOCK" run jobs:nightly -- `+
		`sh -c 'echo ready: $((6*7)); read line < /dev/tty; echo "< $line"'`+"\n", "ready: 42")
	k.typeAndAwait("two\n", "< two")
	k.exitShell()
}

func TestBackgroundCommandWaitsForTheTerminal(t *testing.T) {
	t.Parallel()
	k := newHarness(t).startShell()
	k.typeAndAwait(`"$PADDOCK" run jobs:nightly -- sh -c 'echo ready: $((6*7)); read line; echo "< $line"' &`+"\n",
		"ready: 42")
	k.typeAndAwait("wait %1; echo stopped: $((6*7))\n", "stopped: 42")
	k.typeAndAwait("fg\n", "PADDOCK")
	k.typeAndAwait("hello\n", "< hello")
	k.exitShell()
}

// TestCommandWithoutAShellIsNotStopped makes paddock the session leader: no shell could continue it.
func TestCommandWithoutAShellIsNotStopped(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	k := d.startOnTerminal(d.prepareRun(nightly, "--", "sed", "-u", "s/^/< /"))
	k.typeAndAwait("one\n", "< one")
	k.typeAndAwait(ctrlZ, `\^Z`)
	k.typeAndAwait("two\n", "< two")
	k.typeAndAwait(ctrlD, "")
	k.expectExit(t, exitOK)
}

func TestTerminalModesAreRestoredAfterAKill(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	p := d.prepareRun("--ttl=9s", nightly, "--", "sh", "-c", "stty raw -echo; echo ready; exec sleep 1000")
	k := d.startOnTerminal(p)
	k.Stdout.Await(t, "(ready)")
	d.revoke("no reason")
	k.Exit(t)
	modes, err := unix.IoctlGetTermios(int(k.back.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if k.Cmd.ProcessState.ExitCode() != exitLeaseLost || modes.Lflag&unix.ECHO == 0 || modes.Lflag&unix.ICANON == 0 {
		t.Errorf("exit code %d, modes %o", k.Cmd.ProcessState.ExitCode(), modes.Lflag)
	}
}
