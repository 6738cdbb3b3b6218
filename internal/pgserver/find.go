//go:build unix

package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/usercache"
)

// Find returns the directory of the programs postgres, initdb and those named: the installed ones, else fetched ones.
// The error wraps ErrNotFound if there are none.
func Find(ctx context.Context, programs ...string) (binDir string, err error) {
	f, err := newFinder(Options{})
	if err != nil {
		return "", err
	}
	return f.find(ctx, need{major: f.major, programs: programs})
}

// A finder finds PostgreSQL's programs.
type finder struct {
	installed []string // directories to look in, in order of preference
	source    fetch.Source
	docker    docker
	major     string // the version that the environment demands; empty for any
	never     bool   // fetch nothing
	otherwise string // how the caller takes the URL of a server instead
}

// newFinder returns the finder that the environment configures.
func newFinder(opts Options) (finder, error) {
	variable := func(name string) string {
		if value, ok := opts.env(name); ok {
			return value
		}
		return ""
	}
	f := finder{
		installed: installedDirs(),
		major:     variable("PADDOCK_POSTGRES_VERSION"),
		otherwise: cmp.Or(opts.Otherwise, "use a server that runs elsewhere"),
	}
	if n, err := strconv.Atoi(f.major); f.major != "" && (err != nil || n < pgversion.Oldest || n > pgversion.Newest) {
		return finder{}, fmt.Errorf("PADDOCK_POSTGRES_VERSION is %q; set it to a major version from %d to %d, or unset it",
			f.major, pgversion.Oldest, pgversion.Newest)
	}
	switch value := variable("PADDOCK_FETCH"); value {
	case "":
	case "never":
		f.never = true
	default:
		return finder{}, fmt.Errorf("PADDOCK_FETCH is %q; set it to never, or unset it", value)
	}
	if mirror := variable("PADDOCK_FETCH_MIRROR"); mirror != "" && !regexp.MustCompile(`^https?://`).MatchString(mirror) {
		return finder{}, fmt.Errorf("PADDOCK_FETCH_MIRROR is %q; set it to the base URL of a mirror of Maven Central, "+
			"https://..., or unset it", mirror)
	}
	f.source = fetch.Source{
		Cache:    usercache.Default(),
		Mirror:   variable("PADDOCK_FETCH_MIRROR"),
		Releases: fetch.Releases(),
		Log:      cmp.Or[io.Writer](opts.Log, os.Stderr),
	}
	return f, nil
}

// A need says which programs are needed.
type need struct {
	major    string   // version; empty for any
	data     bool     // the version is that of existing data
	programs []string // beside postgres and initdb
}

// find returns a directory with the programs, and fetches them if necessary.
func (f finder) find(ctx context.Context, n need) (binDir string, err error) {
	if binDir = f.present(ctx, n); binDir != "" {
		return binDir, nil
	}
	return f.fetch(ctx, n, nil)
}

// present returns the directory of programs that are installed or have been fetched before, or nothing.
func (f finder) present(ctx context.Context, n need) (binDir string) {
	for _, dir := range slices.Concat(f.installed, f.source.Cached()) {
		if n.check(ctx, dir) == nil {
			return dir
		}
	}
	return ""
}

// fetch returns the directory of fetched programs. Its error also says why Docker was not used, if that is why.
func (f finder) fetch(ctx context.Context, n need, docker error) (binDir string, err error) {
	if f.never {
		return "", fmt.Errorf("%w, and PADDOCK_FETCH=never forbids fetching it: %s, or unset PADDOCK_FETCH, or %s",
			f.missing(ctx, n), n.remedy(), f.otherwise)
	}
	binDir, err = f.source.Fetch(ctx, fetch.Wish{Major: n.major, Programs: n.programs, Check: n.check})
	if err == nil || ctx.Err() != nil {
		return binDir, err
	}
	if docker != nil {
		why := strings.ReplaceAll(docker.Error(), "\n", "; ")
		err = fmt.Errorf("Docker: %s\n%w", why, err) //nolint:staticcheck // it begins with a name
	}
	return "", fmt.Errorf("%w, and fetching it failed:\n  %s\n%s. Or set PADDOCK_FETCH_MIRROR to the base URL of a mirror of "+
		"Maven Central, or %s", f.missing(ctx, n), strings.ReplaceAll(err.Error(), "\n", "\n  "),
		capitalised(n.remedy()), f.otherwise)
}

// missing returns ErrNotFound with what is missing and what there is.
func (f finder) missing(ctx context.Context, n need) error {
	text := strings.TrimSpace("PostgreSQL " + n.major)
	if len(n.programs) > 0 {
		text += " with " + strings.Join(n.programs, " and ")
	}
	if n.data {
		text = "the data was written by " + text + ", which"
	}
	text += " is not installed"
	var have []string
	for _, dir := range f.installed {
		major, err := majorOf(ctx, dir)
		if err == nil && (need{}).complete(dir) && !slices.Contains(have, major) {
			have = append(have, major)
		}
	}
	if len(have) > 0 {
		text += " (there is " + strings.Join(have, ", ") + ")"
	}
	return notFound(text)
}

// remedy returns how to get what is missing.
func (n need) remedy() string {
	switch {
	case n.data:
		return "install PostgreSQL " + n.major + ", or move the directory away to start with an empty one"
	case n.major != "":
		return "install PostgreSQL " + n.major
	default:
		return "install it with: " + installLine(runtime.GOOS, osRelease())
	}
}

// accepts reports whether a major version will do: the one needed, else any that Paddock works with.
func (n need) accepts(major string) bool {
	if n.major != "" {
		return major == n.major
	}
	number, err := strconv.Atoi(major)
	return err == nil && number >= pgversion.Oldest
}

// complete reports whether dir contains the programs, of whatever version.
func (n need) complete(dir string) bool {
	return !slices.ContainsFunc(append([]string{"postgres", "initdb"}, n.programs...), func(name string) bool {
		return !executable(dir, name)
	})
}

func executable(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// check returns an error unless dir contains the programs needed, in a version that will do, and they run.
func (n need) check(ctx context.Context, dir string) error {
	if !n.complete(dir) {
		return errors.New("programs are missing")
	}
	major, err := majorOf(ctx, dir)
	if err == nil && !n.accepts(major) {
		err = fmt.Errorf("they are of PostgreSQL %s", major)
	}
	return err
}

// majorOf returns the major version of the server program in dir.
func majorOf(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("running %s/postgres --version: %w", dir, withOutput(err))
	}
	return regexp.MustCompile(`\d+`).FindString(string(out)), nil
}

func capitalised(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// withOutput adds what a command wrote to standard error, such as the name of a missing library.
func withOutput(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
