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

// ErrNotFound means that no server is installed. Errors that wrap it end with the command that installs one on this
// system.
var ErrNotFound = errors.New("the PostgreSQL server is not installed on this machine")

// notFound returns ErrNotFound with the command that installs a server.
func notFound() error {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrNotFound, err)
	}
	return fmt.Errorf("%w; install it with: %s", ErrNotFound, installLine(runtime.GOOS, string(release)))
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
