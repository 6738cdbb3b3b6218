//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	// keeperVariable is the folder of a test program that runs as a keeper.
	keeperVariable = "PADDOCK_TEST_KEEPER"
	// noteMark begins the last line that a keeper writes to the process that started it: a note.
	noteMark = "pgtest-keeper: "
	// defaultLinger is how long a keeper waits for the next user, such as the next package.
	defaultLinger = 5 * time.Second
	// idleTick is how often a keeper looks for users.
	idleTick = 100 * time.Millisecond
)

// startKeeper runs this test program again as a keeper, and returns its server. The keeper outlives this process: it
// has a session of its own, and none of the output files that go test waits for. The caller has locked start.
func (f folder) startKeeper() (n note, err error) {
	if err := os.Remove(f.server()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return note{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return note{}, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return note{}, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cmd := osexec.Command(program)
	cmd.Dir = string(f)
	cmd.Env = append(os.Environ(), keeperVariable+"="+string(f))
	cmd.Stderr = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(cmd.Start(), in.Close()); err != nil {
		return note{}, err
	}
	if err := cmd.Process.Release(); err != nil {
		return note{}, err
	}
	return readNote(out)
}

// readNote copies a keeper's lines to standard error up to its note.
func readNote(out *os.File) (note, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text, found := strings.CutPrefix(lines.Text(), noteMark)
		if !found {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		var n note
		err := json.Unmarshal([]byte(text), &n)
		if err == nil && n.Error != "" {
			err = errors.New(n.Error)
		}
		return n, err
	}
	return note{}, errors.Join(errors.New("the process that keeps the shared server ended at its start"), lines.Err())
}

// keep runs a server for the folder until no process uses it, and returns the exit code.
func keep(f folder) int {
	keeper, err := lockFile(f.keeper(), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return say(note{Error: err.Error()})
	}
	defer keeper.Close() //nolint:errcheck // the process ends
	linger, err := f.readLinger()
	if err != nil {
		return say(note{Error: err.Error()})
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	s, err := startOwn(ctx, sharedSettings())
	if err != nil {
		return say(note{Error: err.Error()})
	}
	n := note{Description: s.description, URL: s.admin, Keeper: os.Getpid()}
	if err := f.write(n); err != nil {
		return say(note{Error: errors.Join(err, s.stop(ctx)).Error()})
	}
	code := say(n)
	locked, err := f.awaitLastUser(ctx, s.ended, linger)
	if err = errors.Join(err, s.stop(context.Background())); err != nil {
		f.logError(err)
		code = 1
	}
	return max(code, closeAll(locked))
}

// say tells the process that started this keeper what became of it, and returns the exit code.
func say(n note) int {
	text, err := json.Marshal(n)
	if err == nil {
		_, err = fmt.Fprintln(os.Stderr, noteMark+string(text))
	}
	if err != nil || n.Error != "" {
		return 1
	}
	return 0
}

// awaitLastUser returns when no process has used the server for that long, when the server has ended, or with ctx. It
// returns locks that make the next users wait until they are closed.
func (f folder) awaitLastUser(ctx context.Context, ended <-chan struct{}, linger time.Duration) ([]*os.File, error) {
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	for idle := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ended:
			return nil, errors.New("the shared server ended by itself")
		case <-tick.C:
		}
		used, err := isLocked(f.users())
		if err != nil {
			return nil, err
		}
		if idle += idleTick; used {
			idle = 0
		}
		if idle < linger {
			continue
		}
		if locked, err := f.retire(); locked != nil || err != nil {
			return locked, err
		}
	}
}

// retire locks start and users, and removes the server's file. It returns nil if a process uses the server or is about
// to.
func (f folder) retire() (locked []*os.File, err error) {
	for _, path := range []string{f.start(), f.users()} {
		file, err := lockFile(path, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			closeAll(locked)
			return nil, nil
		}
		if err != nil {
			closeAll(locked)
			return nil, err
		}
		locked = append(locked, file)
	}
	return locked, os.Remove(f.server())
}

// closeAll releases locks, and returns 1 if that fails.
func closeAll(locked []*os.File) (code int) {
	for _, file := range locked {
		if file.Close() != nil {
			code = 1
		}
	}
	return code
}

// logError writes an error of a keeper whose starter may have ended.
func (f folder) logError(err error) {
	_ = os.WriteFile(f.log(), fmt.Appendln(nil, time.Now().UTC().Format(time.RFC3339), err), 0o600) // the last resort
}
