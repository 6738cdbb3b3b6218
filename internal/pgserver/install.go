//go:build unix

package pgserver

import (
	"errors"
	"os"
	"regexp"
	"strings"
)

// ErrNotFound means that PostgreSQL's programs are not on this machine and were not fetched. Errors that wrap it say
// what was tried and how to install them on this system.
var ErrNotFound = errors.New("PostgreSQL is not installed")

// A notFound is an ErrNotFound that says more.
type notFound string

func (n notFound) Error() string { return string(n) }
func (n notFound) Unwrap() error { return ErrNotFound }

// osRelease returns the description of this system, or nothing.
func osRelease() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "" // as on a Mac
	}
	return string(text)
}

// installLine returns the command that installs a server on the system of goos and the text of /etc/os-release. The
// default is Debian.
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
