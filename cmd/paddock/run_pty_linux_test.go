package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminalSession is a pseudo-terminal with a process that leads a session there.
type terminalSession struct {
	*process
	t     *testing.T
	front *os.File
	back  *os.File // what is a terminal to processes; ours keeps it from being hung up
}

// Keys that a terminal acts on.
const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// startOnTerminal starts a process on a terminal of 80 columns.
func (d *harness) startOnTerminal(p *process) *terminalSession {
	d.Helper()
	return d.startOnColumns(80, p)
}

// startOnColumns starts a process on a terminal of that many columns.
func (d *harness) startOnColumns(columns int, p *process) *terminalSession {
	d.Helper()
	k := &terminalSession{process: p, t: d.T}
	k.front, k.back = openPTY(d.T)
	k.resize(columns)
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = k.back, k.back, k.back
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		b := make([]byte, 4096)
		for {
			n, err := k.front.Read(b)
			if _, failed := p.Stdout.Write(b[:n]); err != nil || failed != nil {
				return // the terminal was closed
			}
		}
	}()
	d.Cleanup(func() {
		mustClose(d.T, k.back)
		mustClose(d.T, k.front)
		<-shown
	})
	p.Start(d.T)
	return k
}

// resize sets the size of the terminal.
func (k *terminalSession) resize(columns int) {
	k.t.Helper()
	if err := unix.IoctlSetWinsize(int(k.back.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		k.t.Fatal(err)
	}
}

// openPTY returns the two ends of a new pseudo-terminal.
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

// typeAndAwait types text and waits until the terminal shows the pattern.
func (k *terminalSession) typeAndAwait(text, pattern string) {
	k.t.Helper()
	k.Stdout.Clear()
	if _, err := k.front.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
	k.Stdout.Await(k.t, "("+pattern+")")
}

// startShell starts an interactive shell on a terminal, whose prompt is "? ".
func (d *harness) startShell() *terminalSession {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	d.env["PS1"] = "? "
	d.env["TERM"] = "dumb"
	k := d.startOnTerminal(d.prepare(exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i"), self))
	k.Stdout.Await(d.T, `(\? $)`)
	return k
}

// exitShell ends the shell.
func (k *terminalSession) exitShell() {
	k.t.Helper()
	if _, err := k.front.WriteString("exit 0\n"); err != nil {
		k.t.Fatal(err)
	}
	k.Exit(k.t)
}
