package pgserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Find returns the directory of the programs postgres and initdb: the one in the PATH, else the newest version in the
// usual directories of packages. The error wraps ErrNotFound if there is none.
func Find() (binDir string, err error) {
	return choose(context.Background(), installed(searchDirs()), "")
}

// searchDirs returns the directories to search, in order of preference.
func searchDirs() []string {
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

// installed returns the dirs that contain both programs, without duplicates.
func installed(dirs []string) []string {
	var found []string
	for _, dir := range dirs {
		if executable(dir, "postgres") && executable(dir, "initdb") && !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	return found
}

func executable(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// choose returns the first of dirs whose programs have the major version, or the first of all for "".
func choose(ctx context.Context, dirs []string, major string) (binDir string, err error) {
	if len(dirs) == 0 {
		return "", notFound()
	}
	if major == "" {
		return dirs[0], nil
	}
	var have []string
	for _, dir := range dirs {
		version, err := majorOf(ctx, dir)
		if err != nil {
			return "", err
		}
		if version == major {
			return dir, nil
		}
		have = append(have, version)
	}
	return "", fmt.Errorf("the data was written by PostgreSQL %s, but the installed version is %s: "+
		"install PostgreSQL %s, or move the directory away to start with an empty one",
		major, strings.Join(have, ", "), major)
}

// majorOf returns the major version of the server program in dir.
func majorOf(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("running %s/postgres --version: %w", dir, err)
	}
	return regexp.MustCompile(`\d+`).FindString(string(out)), nil
}
