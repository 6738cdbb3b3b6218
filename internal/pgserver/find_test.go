package pgserver

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
	"github.com/paddock-lock/paddock/internal/usercache"
)

// programs creates directories that look like installed servers of the versions, and returns those of their programs.
func programs(t *testing.T, versions ...string) (dirs []string) {
	t.Helper()
	root := t.TempDir()
	for _, v := range versions {
		bin := filepath.Join(root, v, "bin")
		program(t, bin, "postgres", v)
		program(t, bin, "initdb", v)
		dirs = append(dirs, bin)
	}
	return dirs
}

// program writes a program that prints its version.
func program(t *testing.T, dir, name, version string) {
	t.Helper()
	script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + ".4 (Fence)'\n"
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cached adds a fetched server of the version to the cache of f.
func (f finder) cached(t *testing.T, version string) (dir string) {
	t.Helper()
	dir = filepath.Join(f.source.Cache.Path, "postgresql-"+version+".4-test", "bin")
	program(t, dir, "postgres", version)
	program(t, dir, "initdb", version)
	return dir
}

// newTestFinder returns a finder with an empty cache that must not fetch.
func newTestFinder(t *testing.T, installed ...string) finder {
	t.Helper()
	return finder{
		installed: installed,
		source:    fetch.Source{Cache: usercache.Folder{Path: t.TempDir()}, Log: io.Discard},
		never:     true,
		otherwise: "give a URL",
	}
}

func TestNewestComesFirst(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(filepath.Dir(programs(t, "9", "17", "13")[0]))
	var got []string
	for _, dir := range newestFirst(filepath.Join(root, "*", "bin")) {
		got = append(got, filepath.Base(filepath.Dir(dir)))
	}
	if !slices.Equal(got, []string{"17", "13", "9"}) {
		t.Errorf("the order is %v", got)
	}
}

func TestProgramsAreFoundInOrder(t *testing.T) {
	t.Parallel()
	dirs := programs(t, "17", "13")
	f := newTestFinder(t, dirs...)
	cached := []string{f.cached(t, "17"), f.cached(t, "16"), f.cached(t, "9")}
	bare := newTestFinder(t)
	bare.source = f.source
	for name, c := range map[string]struct {
		f    finder
		n    need
		want string
	}{
		"the first that is installed":            {f, need{}, dirs[0]},
		"the installed one before the fetched":   {f, need{major: "17"}, dirs[0]},
		"the installed one of the version":       {f, need{major: "13"}, dirs[1]},
		"the fetched one of the version":         {f, need{major: "16", data: true}, cached[1]},
		"none that is too old, unless demanded":  {newTestFinder(t, dirs[1]), need{}, ""},
		"the newest that was fetched":            {bare, need{}, cached[0]},
		"the fetched one of an older version":    {bare, need{major: "9"}, cached[2]},
		"none of the version":                    {f, need{major: "14"}, ""},
		"none that has all programs":             {f, need{programs: []string{"pg_basebackup"}}, ""},
		"none, with nothing installed or cached": {newTestFinder(t), need{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.f.present(t.Context(), c.n); got != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
		})
	}
}

func TestFetchedProgramsThatDoNotRunAreIgnored(t *testing.T) {
	t.Parallel()
	f := newTestFinder(t)
	broken, want := f.cached(t, "17"), f.cached(t, "16")
	if err := os.WriteFile(filepath.Join(broken, "postgres"), []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := f.find(t.Context(), need{}); got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestForbiddenFetchSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n    need
		want []string
	}{
		"nothing installed":   {need{}, []string{"PostgreSQL is not installed", "install it with: ", "or give a URL"}},
		"another version":     {need{major: "16"}, []string{"PostgreSQL 16 is not installed (there is 13)", "install PostgreSQL 16"}},
		"data":                {need{major: "16", data: true}, []string{"data was written by PostgreSQL 16, which", "move the directory away"}},
		"a program":           {need{programs: []string{"psql"}}, []string{"PostgreSQL with psql is not installed", "install it with"}},
		"a version's program": {need{major: "13", programs: []string{"psql"}}, []string{"PostgreSQL 13 with psql"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTestFinder(t)
			if c.n.major != "" {
				f.installed = programs(t, "13")
			}
			_, err := f.find(t.Context(), c.n)
			if !errors.Is(err, ErrNotFound) {
				t.Fatalf("the error is: %v", err)
			}
			for _, want := range append(c.want, "PADDOCK_FETCH=never forbids fetching it") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
		})
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variable, value string
		want            string // in the error; empty for none
	}{
		"a version":           {"PADDOCK_POSTGRES_VERSION", "17", ""},
		"a minor version":     {"PADDOCK_POSTGRES_VERSION", "17.4", "set it to a major version from 14 to 18"},
		"an old version":      {"PADDOCK_POSTGRES_VERSION", "13", "set it to a major version from 14 to 18"},
		"a future version":    {"PADDOCK_POSTGRES_VERSION", "99", "set it to a major version from 14 to 18"},
		"a word as version":   {"PADDOCK_POSTGRES_VERSION", "newest", "set it to a major version from 14 to 18"},
		"a forbidden fetch":   {"PADDOCK_FETCH", "never", ""},
		"an unknown decision": {"PADDOCK_FETCH", "no", "set it to never, or unset it"},
		"a mirror":            {"PADDOCK_FETCH_MIRROR", "https://mirror.example/maven2", ""},
		"a path as mirror":    {"PADDOCK_FETCH_MIRROR", "/srv/maven2", "set it to the base URL of a mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newFinder(Options{Env: func(name string) (string, bool) { return c.value, name == c.variable }})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is: %v", err)
			}
		})
	}
}

func TestInstallLineSuitsTheSystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ goos, release, want string }{
		"a Mac":                  {"darwin", "", "brew install postgresql@17"},
		"Debian":                 {"linux", "PRETTY_NAME=\"Debian\"\nID=debian\n", "apt-get install postgresql"},
		"a derivative of Debian": {"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install postgresql"},
		"Fedora":                 {"linux", "ID=fedora\n", "dnf install postgresql-server"},
		"a derivative of RHEL":   {"linux", "ID_LIKE=\"rhel centos fedora\"\nID=\"rocky\"\n", "dnf install postgresql-server"},
		"Alpine":                 {"linux", "ID=alpine", "apk add postgresql"},
		"an unknown system":      {"linux", "", "apt-get install postgresql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := installLine(c.goos, c.release); got != c.want {
				t.Errorf("the error is: %s", got)
			}
		})
	}
}
