package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// ErrNotFound is why no server could be started. The error that wraps it ends
// with the command that installs one on this system.
var ErrNotFound = errors.New("the PostgreSQL server is not installed on this machine")

// notFound is ErrNotFound and, in the same sentence, what to do about it.
func notFound() error {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrNotFound, err)
	}
	return fmt.Errorf("%w; install it with: %s", ErrNotFound, installLine(runtime.GOOS, string(release)))
}

// installLine is the command that installs a server on a system that goos and
// the text of its /etc/os-release describe; Debian's where that says nothing.
func installLine(goos, release string) string {
	if goos == "darwin" {
		return "brew install postgresql@17"
	}
	lines := map[string]string{
		"debian": "apt-get install postgresql",
		"fedora": "dnf install postgresql-server",
		"rhel":   "dnf install postgresql-server",
		"alpine": "apk add postgresql",
		"arch":   "pacman -S postgresql",
		"suse":   "zypper install postgresql-server",
	}
	for _, match := range regexp.MustCompile(`(?m)^(?:ID|ID_LIKE)="?([^"\n]*)`).FindAllStringSubmatch(release, -1) {
		for _, id := range strings.Fields(match[1]) {
			if line, ok := lines[id]; ok {
				return line
			}
		}
	}
	return lines["debian"]
}
