package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
)

// The exit codes that a shell has for its commands.
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitSignalled     = 128 // and the number of the signal that ended the command
)

// A StartError says that a command cannot be started.
type StartError struct {
	ExitCode int // ExitNotExecutable or ExitNotFound
	err      error
}

func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.err }

// LookPath returns the file that a shell would execute for the name, or a StartError. pathList is the value of $PATH.
func LookPath(name, pathList string) (string, error) {
	path, err := name, error(syscall.ENOENT)
	if strings.Contains(name, "/") {
		_, err = exec.LookPath(name)
	} else if name != "" {
		path, err = lookIn(filepath.SplitList(pathList), name)
	}
	if err != nil {
		return "", newStartError(name, err)
	}
	return path, nil
}

// lookIn returns the first executable file of that name. If there is none, the error is about the first file of that
// name that cannot be executed.
func lookIn(folders []string, name string) (string, error) {
	var notExecutable error
	for _, folder := range folders {
		path, err := exec.LookPath(cmp.Or(folder, ".") + "/" + name)
		if err == nil {
			return path, nil
		}
		if notExecutable == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			notExecutable = err
		}
	}
	return "", cmp.Or(notExecutable, error(syscall.ENOENT))
}

func newStartError(name string, err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	shown := printable.Text(name)
	switch {
	case errors.Is(err, syscall.ENOENT) && strings.Contains(name, "/"):
		return &StartError{ExitNotFound, fmt.Errorf("%s, or the interpreter that it names, was not found", shown)}
	case errors.Is(err, syscall.ENOENT):
		return &StartError{ExitNotFound, fmt.Errorf("the command '%s' was not found in $PATH", shown)}
	case errors.Is(err, syscall.ENOEXEC):
		err = fmt.Errorf("%w (a script must begin with #! and the path of its interpreter)", err)
	}
	return &StartError{ExitNotExecutable, fmt.Errorf("%s cannot be executed: %w", shown, err)}
}
