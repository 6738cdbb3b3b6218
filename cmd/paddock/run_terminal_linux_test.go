package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-lock/paddock/lock"
)

// The commands print what is not a part of the command line, which a terminal shows too.
// The one that waits has no children, since a shell that is about to have one cannot be
// stopped, and does not sleep, since it looks for signals just before that.
const (
	waits = `"$PADDOCK" run --ttl 2s jobs:nightly -- sh -c 'trap "echo caught: \$((6*7)); exit 9" INT; trap "echo goes on: \$((6*7))" CONT; ` +
		`echo ready: $((6*7)); while :; do :; done'`
	copies = `"$PADDOCK" run jobs:nightly -- sh -c 'echo ready: $((6*7)); exec sed -u "s/^/< /"'`
)

func TestTheCommandIsInTheForeground(t *testing.T) {
	t.Parallel()
	k := sitDown(t).atAShell()
	k.types(waits+"\n", "ready: 42")
	k.types(ctrlC, `caught: 42\r\n(?s:.*)\? $`)
	k.types("echo code: $?\n", "code: 9")
	k.types(copies+"\n", "ready: 42")
	k.types("hello\n", "< hello")
	k.types(ctrlD, `\? $`)
	k.types("echo code: $?\n", "code: 0")
	k.leaves()
}

func TestAStoppedCommandGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	k := sitDown(t).atAShell()
	k.types(copies+"\n", "ready: 42")
	for range 3 {
		k.types("one\n", "< one")
		k.types(ctrlZ, `Stopped(?s:.*)\? $`)
		k.types("echo $((6*7))\n", "42")
		k.types("fg\n", "PADDOCK")
		k.types("two\n", "< two")
	}
	k.types(ctrlD, `\? $`)
	k.leaves()
}

// TestACommandThatLosesItsLeaseWhileItIsStoppedDoesNotRunAgain has nobody renew the
// lease: paddock is stopped together with its command.
func TestACommandThatLosesItsLeaseWhileItIsStoppedDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	k := d.atAShell()
	k.types(waits+"\n", "ready: 42")
	k.types(ctrlZ, `Stopped(?s:.*)\? $`)
	d.hears(nightly, lock.Expired, "me")
	k.types("fg 2>/dev/null\n", `was stopped \(SIGKILL\), since it lost the lock(?s:.*)\? $`)
	if shown := k.stdout.String(); strings.Contains(shown, "goes on: 42") {
		t.Errorf("it has run again:\n%s", shown)
	}
	k.types("echo code: $?\n", "code: 76")
	k.leaves()
}

// TestInAPipelineTheKeysAreForAll has somebody else read what the command prints, who
// may need the terminal more.
func TestInAPipelineTheKeysAreForAll(t *testing.T) {
	t.Parallel()
	k := sitDown(t).atAShell()
	k.types(waits+" | cat\n", "ready: 42")
	k.types(ctrlZ, `Stopped(?s:.*)\? $`)
	k.types("fg\n", "goes on: 42")
	k.types(ctrlC, `\? $`)
	k.types("echo one | "+`"$PADDOCK" run jobs:nightly -- sh -c 'echo ready: $((6*7)); read line < /dev/tty; echo "< $line"'`+"\n", "ready: 42")
	k.types("two\n", "< two")
	k.leaves()
}

func TestInTheBackgroundTheCommandHasToWaitForTheTerminal(t *testing.T) {
	t.Parallel()
	k := sitDown(t).atAShell()
	k.types(`"$PADDOCK" run jobs:nightly -- sh -c 'echo ready: $((6*7)); read line; echo "< $line"' &`+"\n", "ready: 42")
	k.types("wait %1; echo stopped: $((6*7))\n", "stopped: 42")
	k.types("fg\n", "PADDOCK")
	k.types("hello\n", "< hello")
	k.leaves()
}

// TestWithoutAShellNothingStops has paddock lead the session: there is nobody who could
// have it go on if it stopped.
func TestWithoutAShellNothingStops(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	k := d.sits(d.prepares(nightly, "--", "sed", "-u", "s/^/< /"))
	k.types("one\n", "< one")
	k.types(ctrlZ, `\^Z`)
	k.types("two\n", "< two")
	k.types(ctrlD, "")
	k.ends(t, exitOK)
}

func TestTheTerminalIsAsItWasAfterACommandThatWasKilled(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	p := d.prepares("--ttl=3s", nightly, "--", "sh", "-c", "stty raw -echo; echo ready; exec sleep 1000")
	k := d.sits(p)
	k.stdout.await(t, "(ready)")
	d.revokes("no reason")
	k.exit(t)
	modes, err := unix.IoctlGetTermios(int(k.back.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if k.cmd.ProcessState.ExitCode() != exitLeaseLost || modes.Lflag&unix.ECHO == 0 || modes.Lflag&unix.ICANON == 0 {
		t.Errorf("exit code %d, modes %o", k.cmd.ProcessState.ExitCode(), modes.Lflag)
	}
}
