package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A keyboard is a terminal as its user has it: what is typed goes in, and what is shown
// comes out. A process whose terminal it is leads a session of its own there.
type keyboard struct {
	*process
	t     *testing.T
	front *os.File
	back  *os.File // what is a terminal to processes; ours keeps it from being hung up
}

// The keys that a terminal acts upon.
const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// sits starts a process at a terminal.
func (d *desk) sits(p *process) *keyboard {
	d.Helper()
	k := &keyboard{process: p, t: d.T}
	k.front, k.back = openPTY(d.T)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = k.back, k.back, k.back
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		b := make([]byte, 4096)
		for {
			n, err := k.front.Read(b)
			if _, failed := p.stdout.Write(b[:n]); err != nil || failed != nil {
				return // the terminal was closed
			}
		}
	}()
	d.Cleanup(func() {
		closed(d.T, k.back)
		closed(d.T, k.front)
		<-shown
	})
	p.run(d.T)
	return k
}

// openPTY returns the two ends of a new terminal.
func openPTY(t *testing.T) (front, back *os.File) {
	t.Helper()
	front, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(front.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(front.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	back, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return front, back
}

// types types what is then seen to lead to the pattern.
func (k *keyboard) types(text, pattern string) {
	k.t.Helper()
	k.stdout.forget()
	if _, err := k.front.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
	k.stdout.await(k.t, "("+pattern+")")
}

// forget empties the transcript.
func (t *transcript) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = nil
}

// atAShell starts an interactive shell at a terminal, whose prompt is "? ".
func (d *desk) atAShell() *keyboard {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	d.env["PS1"] = "? "
	d.env["TERM"] = "dumb"
	k := d.sits(d.prepared(exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i"), self))
	k.stdout.await(d.T, `(\? $)`)
	return k
}

// leaves has the shell end.
func (k *keyboard) leaves() {
	k.t.Helper()
	if _, err := k.front.WriteString("exit 0\n"); err != nil {
		k.t.Fatal(err)
	}
	k.exit(k.t)
}
