//go:build unix

package pgserver

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// installedDirs returns the directories where packages install PostgreSQL, in order of preference: the one in the
// PATH, then the newest version in the usual places.
func installedDirs() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",       // Debian, Ubuntu
		"/usr/pgsql-*/bin",                // the PostgreSQL project's RPMs
		"/usr/libexec/postgresql*",        // Alpine
		"/opt/homebrew/opt/postgres*/bin", // Homebrew on Apple silicon, on Intel, on Linux
		"/usr/local/opt/postgres*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgres*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		dirs = append(dirs, newestFirst(pattern)...)
	}
	return dirs
}

// newestFirst returns the paths of a pattern, sorted by the version in the path.
func newestFirst(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		panic(fmt.Sprintf("postgres: %s: %v", pattern, err)) // the pattern is a constant
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(pathVersion(b), pathVersion(a)) })
	return dirs
}

// pathVersion returns the last number in dir, 0 if there is none.
func pathVersion(dir string) float64 {
	numbers := regexp.MustCompile(`\d+(\.\d+)?`).FindAllString(dir, -1)
	if len(numbers) == 0 {
		return 0
	}
	n, err := strconv.ParseFloat(numbers[len(numbers)-1], 64)
	if err != nil {
		return 0
	}
	return n
}
