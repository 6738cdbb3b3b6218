package daemon

import (
	"fmt"
	"net"
	"os/exec"

	"github.com/paddock-lock/paddock/bench/system"
)

// Find returns the path of an installed program. The error wraps system.ErrMissing and names
// the Debian package that has it.
func Find(program, pkg string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", Missing(program, pkg)
	}
	return path, nil
}

// Missing is the error that says what to install.
func Missing(what, pkg string) error {
	return fmt.Errorf("%s: %w: apt-get install %s", what, system.ErrMissing, pkg)
}

// Addr returns an address on loopback that nobody listens on. Another may take it before it is
// used; the kernel gives it to nobody else for a good while, though.
func Addr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
