package daemon

import (
	"fmt"
	"os/exec"

	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/internal/freeport"
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

// Addr returns a free loopback address.
func Addr() (string, error) {
	port, err := freeport.Find()
	return freeport.Address(port), err
}
