package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/paddock-lock/paddock/server"
)

// What the linker says with -X main.release=… -X main.commit=…; without, the
// build's own records do.
var release, commit string

// version returns what this binary is.
func version() server.Version {
	v := server.Version{Version: release, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, setting.Value)
			}
		}
	}
	v.Version = strings.Trim(v.Version, "()") // of "(devel)"
	return v
}

type versionCommand struct {
	licensesFlag
}

// Run prints the version.
func (c versionCommand) Run(p *program) error {
	if c.Licenses {
		return printLicenses(p)
	}
	v := version()
	_, err := fmt.Fprintf(p.stdout, "paddock %s (commit %s, %s)\n", v.Version, cmp.Or(v.Commit, "unknown"), v.Go)
	return err
}
