package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
)

// An origin is where this process comes from.
type origin struct {
	pid        int
	hostname   string
	executable string // its path
	typed      string // the name by which it was started
	clone      bool   // the working directory is a clone of Paddock
	module     string // the version of the module, if go run has fetched it
}

// originHere returns the origin of this process.
func originHere() origin {
	o := origin{pid: os.Getpid(), typed: os.Args[0]}
	// What is unknown is empty, and the name by which it was started is printed.
	o.executable, _ = os.Executable()
	o.hostname, _ = os.Hostname()
	_, err := os.Stat("cmd/paddock/main.go")
	o.clone = err == nil
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		o.module = info.Main.Version
	}
	return o
}

// builtByGoRun matches the path of a program that go run has built, in a temporary folder or in Go's cache.
var builtByGoRun = regexp.MustCompile(`[/\\]go-build\d*[/\\]|[/\\][0-9a-f]{64}-d[/\\]`)

// containerID matches the hostname that Docker gives to a container.
var containerID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// command returns what to type in a shell to run this program again. pathList is the variable PATH.
func (o origin) command(pathList string) string {
	const pkg = "github.com/paddock-lock/paddock/cmd/paddock"
	switch name := filepath.Base(o.typed); {
	case o.pid == 1 && containerID.MatchString(o.hostname):
		return "docker exec " + o.hostname + " " + printable.ShellWord(o.executable)
	case builtByGoRun.MatchString(o.executable) && o.clone:
		return "go run ./cmd/paddock"
	case builtByGoRun.MatchString(o.executable):
		return strings.TrimSuffix("go run "+pkg+"@"+o.module, "@")
	case name == o.typed && isProgram(name, pathList):
		return printable.ShellWord(name)
	}
	return printable.ShellWord(cmp.Or(o.executable, o.typed))
}

// isProgram reports whether a shell finds a program of that name.
func isProgram(name, pathList string) bool {
	_, err := supervise.LookPath(name, pathList)
	return err == nil
}
