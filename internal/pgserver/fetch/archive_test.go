//go:build unix

package fetch

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostileArchiveWritesNothingOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []file
		want  string // in the error
	}{
		"a parent":            {[]file{{name: "../escaped", content: "x"}}, "leads out"},
		"an absolute path":    {[]file{{name: "/tmp/escaped", content: "x"}}, "leads out"},
		"a link to a parent":  {[]file{{name: "lib/a", content: "../../outside", kind: tar.TypeSymlink}}, "leads out"},
		"an absolute link":    {[]file{{name: "lib/a", content: "/etc/passwd", kind: tar.TypeSymlink}}, ""},
		"a hard link":         {[]file{{name: "lib/a", content: "/etc/passwd", kind: tar.TypeLink}}, "unexpected type"},
		"a device":            {[]file{{name: "lib/a", kind: tar.TypeChar}}, "unexpected type"},
		"the same file twice": {[]file{{name: "a", content: "x"}, {name: "a", content: "y"}}, "exists"},
		"a file through a link": {[]file{
			{name: "lib", content: "bin", kind: tar.TypeSymlink}, {name: "bin/x", content: "x"}, {name: "lib/x", content: "y"},
		}, "exists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "a", "b")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := unpack(t.Context(), bytes.NewReader(packTar(t, "", c.files)), "", dir)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v; want %q", err, c.want)
			}
			if outside, err := filepath.Glob(filepath.Join(top, "*")); err != nil || len(outside) != 1 {
				t.Errorf("outside are %q, %v", outside, err)
			}
			if _, err := os.Readlink(filepath.Join(dir, "lib", "a")); err == nil {
				if content, err := os.ReadFile(filepath.Join(dir, "lib", "a")); err == nil {
					t.Errorf("a link leads to %q", content)
				}
			}
		})
	}
}

func TestLinksOfAPackageStayInside(t *testing.T) {
	t.Parallel()
	for _, list := range []string{
		`[{"source":"../../outside","target":"native/lib/a"}]`,
		`[{"source":"native/lib/a","target":"../../outside"}]`,
		`[{"source":"/etc/passwd","target":"native/lib/a"}]`,
		`[{"source":`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pg-symlinks.json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := hydrate(dir); err == nil {
			t.Errorf("accepted: %s", list)
		}
	}
}

func TestUnpackedFilesAreReadableAndProgramsExecutable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unpack(t.Context(), bytes.NewReader(packTar(t, "", programs())), "", dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		"bin/postgres": 0o755, "lib/libpq.so.5": 0o755, "share/postgresql/postgres.bki": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s has the mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func TestAbsoluteLinkIsRelativeToTheArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := []file{{name: "lib/a", content: "/lib/b", kind: tar.TypeSymlink}}
	if err := unpack(t.Context(), bytes.NewReader(packTar(t, "", link)), "", dir); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "lib", "a")); filepath.IsAbs(target) {
		t.Errorf("the link leads to %s, %v", target, err)
	}
}
