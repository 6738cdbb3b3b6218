package daemon

import (
	"fmt"
	"net"
	"os/exec"

	"github.com/paddock-lock/paddock/bench/system"
)

// Find returns the path of an installed program. If there is none, the error wraps system.ErrMissing
// and names the Debian package.
func Find(program, pkg string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", Missing(program, pkg)
	}
	return path, nil
}

// Missing returns an error that wraps system.ErrMissing and names the package to install.
func Missing(what, pkg string) error {
	return fmt.Errorf("%s: %w: apt-get install %s", what, system.ErrMissing, pkg)
}

// Addr returns a free loopback address. Another process may take it before it is used, but the kernel
// does not assign the port again for some time.
func Addr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
