//go:build unix

package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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

	"github.com/ulikunitz/xz"

	"github.com/paddock-lock/paddock/internal/usercache"
)

// childSource is an environment variable: if set, the test program fetches from the Source in it, in a process of its
// own, whose PATH a test chooses. It prints the result of Fetch.
const childSource = "PADDOCK_FETCH_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childSource); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

func child(text string) int {
	var s Source
	err := json.Unmarshal([]byte(text), &s)
	s.Log = os.Stderr
	if err == nil {
		var dir string
		if dir, err = s.Fetch(context.Background(), Wish{Check: runs}); err == nil {
			fmt.Println(dir)
			return 0
		}
	}
	fmt.Println(err)
	return 1
}

// runs returns an error unless the fake programs run.
func runs(ctx context.Context, binDir string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(binDir, "postgres")).Output()
	if err == nil && string(out) != "fake\n" {
		err = fmt.Errorf("it says %q", out)
	}
	return err
}

// fetchIn fetches in a process of its own that finds no programs but those in the directory path, and sh.
func fetchIn(t *testing.T, s Source, path string) (out, log string) {
	t.Helper()
	wait := startFetch(t, s, path)
	return wait()
}

// startFetch is like fetchIn, but does not wait for the result.
func startFetch(t *testing.T, s Source, path string) (wait func() (out, log string)) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childSource+"="+string(text), "PATH="+path)
	var outs, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &outs, &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (out, log string) {
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Error(err)
		}
		return strings.TrimSpace(outs.String()), logs.String()
	}
}

// A file is a file in an archive; a link leads to its content.
type file struct {
	name, content string
	kind          byte // of package tar; zero for a regular file
}

// programs are what the fake archives contain.
func programs() []file {
	return []file{
		{name: "bin/postgres", content: "#!/bin/sh\necho fake\n"},
		{name: "bin/initdb", content: "#!/bin/sh\n"},
		{name: "lib/libpq.so.5.17", content: "a library"},
		{name: "lib/libpq.so.5", content: "libpq.so.5.17", kind: tar.TypeSymlink},
		{name: "share/postgresql/postgres.bki", content: "a catalogue"},
	}
}

// packTar returns a tar archive of the files.
func packTar(t *testing.T, prefix string, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Name: prefix + f.name, Mode: 0o600, Typeflag: f.kind, Size: int64(len(f.content))}
		if f.kind != 0 && f.kind != tar.TypeReg {
			header.Linkname, header.Size = f.content, 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := io.WriteString(w, f.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packJar returns an archive as on Maven Central.
func packJar(t *testing.T, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	jar := zip.NewWriter(&b)
	entry, err := jar.Create("postgres-linux-x86_64.txz")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := xz.NewWriter(entry)
	if err != nil {
		t.Fatal(err)
	}
	_, err = packed.Write(packTar(t, "./", files))
	if err := errors.Join(err, packed.Close(), jar.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packPackage returns a package as in npm, where a list replaces the links.
func packPackage(t *testing.T, files []file) []byte {
	t.Helper()
	links := []map[string]string{}
	var regular []file
	for _, f := range files {
		if f.kind == 0 {
			regular = append(regular, f)
			continue
		}
		links = append(links, map[string]string{
			"source": "native/" + filepath.Join(filepath.Dir(f.name), f.content), "target": "native/" + f.name,
		})
	}
	list, err := json.Marshal(links)
	if err != nil {
		t.Fatal(err)
	}
	regular = append(regular, file{name: "pg-symlinks.json", content: string(list)})
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	_, err = packed.Write(packTar(t, "package/native/", regular))
	if err := errors.Join(err, packed.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// release returns a release of the fake programs for this system.
func release(t *testing.T) Release {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(t.Context(), bytes.NewReader(packTar(t, "", programs())), "", dir); err != nil {
		t.Fatal(err)
	}
	sum, err := digest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Release{"17.99", map[string]Build{runtime.GOOS + "/" + runtime.GOARCH: {sum, 1}}}
}

// newSource returns a Source with an empty cache for the release, from a mirror that serves the jar.
func newSource(t *testing.T, jar []byte) Source {
	t.Helper()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := fmt.Sprintf("/maven2/io/zonky/test/postgres/embedded-postgres-binaries-%[1]s/17.99.0/"+
			"embedded-postgres-binaries-%[1]s-17.99.0.jar", mavenName())
		if r.URL.Path != want || jar == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(jar) // the client may have gone
	}))
	t.Cleanup(mirror.Close)
	return Source{
		Cache:    usercache.Folder{Path: filepath.Join(t.TempDir(), "cache")},
		Mirror:   mirror.URL + "/maven2",
		Releases: []Release{release(t)},
		Log:      io.Discard,
	}
}
