package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/bench/daemon"
	"github.com/paddock-lock/paddock/bench/system"
)

// shell returns options for a program that runs a line of shell.
func shell(t *testing.T, line string) daemon.Options {
	t.Helper()
	return daemon.Options{Program: "/bin/sh", Args: []string{"-c", line}, Dir: filepath.Join(t.TempDir(), "sh")}
}

func TestStopRemovesEverything(t *testing.T) {
	t.Parallel()
	opts := shell(t, "exec sleep 1000")
	d, err := daemon.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(opts.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	if err := syscall.Kill(d.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("its process: %v", err)
	}
}

func TestAnEarlyExitIsReportedWithTheLog(t *testing.T) {
	t.Parallel()
	opts := shell(t, "echo the disk is on fire; exit 3")
	opts.Addr = free(t)
	_, err := daemon.Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "on fire") || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	t.Parallel()
	_, err := daemon.Find("no-such-program", "no-such-package")
	if !errors.Is(err, system.ErrMissing) || !strings.Contains(err.Error(), "apt-get install no-such-package") {
		t.Errorf("got %v", err)
	}
}

func free(t *testing.T) string {
	t.Helper()
	addr, err := daemon.Addr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
