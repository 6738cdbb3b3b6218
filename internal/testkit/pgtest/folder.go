//go:build unix

package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// protocol is the version of the files in a folder.
	protocol = 1
	// startTimeout bounds the start of a server by another process, which may have to fetch PostgreSQL first.
	startTimeout = 10 * time.Minute
)

// A folder is where the test processes of one user find the server that they share. Its files:
//
//	users   locked shared by each process that uses the server: the kernel counts them, and forgets killed ones
//	start   locked by the process that looks for a server or starts one, and by a keeper that retires
//	keeper  locked by the keeper for as long as it lives, so that a dead keeper's server is not looked for
//	server  the server, as JSON; written by the keeper when the server accepts connections
//	log     the errors of keepers that no test process reads
//	linger  a duration in place of defaultLinger, for tests of this package
type folder string

func (f folder) users() string  { return filepath.Join(string(f), "users") }
func (f folder) start() string  { return filepath.Join(string(f), "start") }
func (f folder) keeper() string { return filepath.Join(string(f), "keeper") }
func (f folder) server() string { return filepath.Join(string(f), "server") }
func (f folder) log() string    { return filepath.Join(string(f), "log") }
func (f folder) linger() string { return filepath.Join(string(f), "linger") }

// openFolder creates the folder for this user, these settings and this choice of PostgreSQL, unless it exists.
func openFolder() (folder, error) {
	key := sha256.New()
	fmt.Fprintln(key, protocol, os.Getenv("PATH"))
	for _, v := range slices.Sorted(slices.Values(os.Environ())) {
		if strings.HasPrefix(v, "PADDOCK_POSTGRES_") || strings.HasPrefix(v, "PADDOCK_FETCH") {
			fmt.Fprintln(key, v)
		}
	}
	all := sharedSettings()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(key, name, all[name])
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("paddock-tests-%d-%x", os.Getuid(), key.Sum(nil)[:6]))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() || info.Mode() != fs.ModeDir|0o700 {
		return "", fmt.Errorf("%s must be a directory of the current user with mode 0700: remove it", dir)
	}
	return folder(dir), nil
}

// A note is what a keeper says of its server.
type note struct {
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
	Keeper      int    `json:"keeper,omitempty"` // its process ID
	Error       string `json:"error,omitempty"`
}

// join returns the server in the folder, which ends a few seconds after its last user has left. It starts a keeper
// if there is none.
func (f folder) join(ctx context.Context) (*server, error) {
	users, err := lockFile(f.users(), syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	n, err := f.findOrStart(ctx)
	if err != nil {
		return nil, errors.Join(err, users.Close())
	}
	leave := func(context.Context) error { return users.Close() }
	return &server{description: n.Description, admin: n.URL, stop: leave}, nil
}

func (f folder) findOrStart(ctx context.Context) (n note, err error) {
	start, err := lockFile(f.start(), syscall.LOCK_EX)
	if err != nil {
		return note{}, err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		alive, err := isLocked(f.keeper())
		if err != nil {
			return note{}, err
		}
		if !alive {
			return f.startKeeper()
		}
		n, err := f.answering(ctx)
		if err == nil {
			return n, nil
		}
		select {
		case <-tick.C: // the keeper is starting its server, or about to end because that has ended
		case <-ctx.Done():
			return note{}, fmt.Errorf("the shared server of %s does not answer: %w", f, err)
		}
	}
}

// answering returns the server if it accepts connections.
func (f folder) answering(ctx context.Context) (note, error) {
	n, err := f.read()
	if err != nil {
		return note{}, err
	}
	conn, err := pgx.Connect(ctx, n.URL)
	if err != nil {
		return note{}, err
	}
	return n, conn.Close(ctx)
}

func (f folder) read() (n note, err error) {
	text, err := os.ReadFile(f.server())
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

// write replaces the file server atomically.
func (f folder) write(n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.server()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(f.server()+".new", f.server())
}

func (f folder) readLinger() (time.Duration, error) {
	text, err := os.ReadFile(f.linger())
	if errors.Is(err, fs.ErrNotExist) {
		return defaultLinger, nil
	}
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(string(text))
}

// lockFile locks a file, and creates it if necessary. The lock ends when the file is closed or the process ends.
func lockFile(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return file, nil
}

// isLocked reports whether a process has locked the file.
func isLocked(path string) (bool, error) {
	file, err := lockFile(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, file.Close()
}
