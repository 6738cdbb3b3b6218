package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs creates directories that look like installed servers of the versions.
func programs(t *testing.T, versions ...string) (pattern string) {
	t.Helper()
	root := t.TempDir()
	for _, v := range versions {
		bin := filepath.Join(root, v, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"postgres", "initdb"} {
			script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + v + ".4 (Fence)'\n"
			if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(root, "*", "bin")
}

func TestNewestComesFirst(t *testing.T) {
	t.Parallel()
	dirs := installed(newestFirst(programs(t, "9", "17", "13")))
	var got []string
	for _, dir := range dirs {
		got = append(got, filepath.Base(filepath.Dir(dir)))
	}
	if !slices.Equal(got, []string{"17", "13", "9"}) {
		t.Errorf("the order is %v", got)
	}
}

func TestBothProgramsAreNeeded(t *testing.T) {
	t.Parallel()
	pattern := programs(t, "17")
	dirs := newestFirst(pattern)
	if err := os.Chmod(filepath.Join(dirs[0], "initdb"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := installed(dirs); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

func TestDataSelectsItsVersion(t *testing.T) {
	t.Parallel()
	dirs := newestFirst(programs(t, "17", "13"))
	for major, want := range map[string]string{"": dirs[0], "17": dirs[0], "13": dirs[1]} {
		if got, err := choose(t.Context(), dirs, major); got != want || err != nil {
			t.Errorf("data of version %q: %s, %v", major, got, err)
		}
	}
	_, err := choose(t.Context(), dirs, "16")
	if err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 16, but the installed version is 17, 13") {
		t.Errorf("the error is: %v", err)
	}
}

func TestNothingInstalledSaysHowToInstall(t *testing.T) {
	t.Parallel()
	_, err := choose(t.Context(), nil, "")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "install") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is: %v", err)
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
