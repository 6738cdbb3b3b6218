package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-lock/paddock/client/guard"
)

// lookUp returns the file that a shell would execute for the name, or a failure
// with the exit code that a shell would have.
func lookUp(name string, env lookup) (string, error) {
	path, err := name, error(syscall.ENOENT)
	if strings.Contains(name, "/") {
		_, err = exec.LookPath(name)
	} else if name != "" {
		variable, _ := env("PATH")
		path, err = lookIn(filepath.SplitList(variable), name)
	}
	if err != nil {
		return "", notExecuted(name, err)
	}
	return path, nil
}

// lookIn returns the first file of that name that can be executed; if there is none,
// why the first that there is cannot be.
func lookIn(folders []string, name string) (string, error) {
	var found error
	for _, folder := range folders {
		path, err := exec.LookPath(cmp.Or(folder, ".") + "/" + name)
		if err == nil {
			return path, nil
		}
		if found == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			found = err
		}
	}
	return "", cmp.Or(found, error(syscall.ENOENT))
}

// notExecuted returns the failure of a command that cannot be executed.
func notExecuted(name string, err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	switch {
	case errors.Is(err, syscall.ENOENT) && strings.Contains(name, "/"):
		return &failure{exitNotFound, fmt.Errorf("%s was not found, or the interpreter that it names", legible(name))}
	case errors.Is(err, syscall.ENOENT):
		return &failure{exitNotFound, fmt.Errorf("the command '%s' was not found in $PATH", legible(name))}
	case errors.Is(err, syscall.ENOEXEC):
		err = fmt.Errorf("%w (a script begins with #! and its interpreter)", err)
	}
	return &failure{exitNotExecutable, fmt.Errorf("%s cannot be executed: %w", legible(name), err)}
}

// environmentOf returns what the command finds in its environment: what we found, and
// under which lease it works. The lease_id is not in it: who knows that can end the
// lease, and the command's children are told everything.
func environmentOf(lease *guard.Lease, holder, url string) []string {
	ours := []variable{
		{"PADDOCK_LOCK", lease.Name()},
		{"PADDOCK_FENCING_TOKEN", strconv.FormatInt(int64(lease.Token()), 10)},
		{"PADDOCK_SLOT", ""},
		{"PADDOCK_HOLDER", holder},
		{"PADDOCK_URL", url},
		{"PADDOCK_LEASE_ID", ""},
		{"PADDOCK_EXPIRES_AT", ""}, // it would be that of another lease
	}
	if lease.Slot() != 0 {
		ours[2].value = strconv.Itoa(lease.Slot())
	}
	env := slices.DeleteFunc(os.Environ(), func(line string) bool {
		return slices.ContainsFunc(ours, func(v variable) bool { return strings.HasPrefix(line, v.name+"=") })
	})
	for _, v := range ours {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}
