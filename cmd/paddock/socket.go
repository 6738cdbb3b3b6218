package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// unixScheme begins the address of a socket in the file system, unix:/run/paddock.sock.
const unixScheme = "unix:"

// socketMode lets the owner and the group of a socket connect. The group is that of the process, or of the directory if
// that has the setgid bit.
const socketMode = 0o660

// bindSocket listens on a socket at the path. It replaces one on which no process listens any more, and refuses to
// replace anything else. The listener removes the socket when it is closed.
func bindSocket(ctx context.Context, flag, path string) (net.Listener, error) {
	stale, err := isStale(ctx, path)
	if err == nil && stale {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", flag, unixScheme, path, err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.EINVAL):
		return nil, fmt.Errorf("%s %s%s: the path is too long for a socket; choose one of at most 100 bytes", flag, unixScheme, path)
	case err != nil:
		return nil, fmt.Errorf("%w; choose another path with %s", err, flag)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// errSocketInUse says that a process listens on a socket.
var errSocketInUse = errors.New("another process listens on that socket; choose another path, or stop it")

// isStale reports whether there is a socket at the path on which no process listens. It returns errSocketInUse if one
// does, and another error if there is something else.
func isStale(ctx context.Context, path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().Type() != os.ModeSocket:
		return false, errors.New("there is a file that is no socket; choose another path, or remove it")
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return false, errors.Join(errSocketInUse, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return true, nil
	}
	return false, err
}

// systemdSocket, as --listen, is the socket that a .socket unit of systemd passes.
const systemdSocket = "systemd"

// firstPassedFile is the descriptor of the first socket that systemd passes.
const firstPassedFile = 3

// inheritSocket returns a listener on the socket that systemd passes, as sd_listen_fds(3) says. Closing it leaves the
// socket open in systemd.
func inheritSocket(env lookup) (net.Listener, error) {
	pid, _ := env("LISTEN_PID")
	sockets, _ := env("LISTEN_FDS")
	switch {
	case pid == "" || sockets == "" || sockets == "0":
		return nil, usagef("--listen systemd: systemd passed no socket; start paddock.socket first, and name it in " +
			"Requires= of the service; or give HOST:PORT or unix:PATH")
	case pid != strconv.Itoa(os.Getpid()):
		return nil, usagef("--listen systemd: LISTEN_PID is %s, and this process is %d; run paddock in ExecStart= "+
			"itself, or with exec in a script", pid, os.Getpid())
	case sockets != "1":
		return nil, usagef("--listen systemd: LISTEN_FDS is %s; give the .socket unit one ListenStream=", sockets)
	}
	file := os.NewFile(firstPassedFile, systemdSocket)
	listener, err := net.FileListener(file) // of a duplicate
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, usagef("--listen systemd: cannot listen on the socket that systemd passed: %w", err)
	}
	return listener, nil
}

// addressOf returns the address of a listener, as --listen has it.
func addressOf(a net.Addr) string {
	if a.Network() == "unix" {
		return unixScheme + a.String()
	}
	return a.String()
}
