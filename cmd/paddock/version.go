package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/server"
)

// Set by the linker with -X main.release=… -X main.commit=…; otherwise the build information is used.
var release, commit string

// version returns the version of this binary.
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
	Licenses bool `help:"Print the licenses of the third-party software in this binary."`
}

// Run prints the version.
func (c versionCommand) Run(p *program) error {
	if c.Licenses {
		_, err := io.WriteString(p.stdout, paddock.ThirdPartyLicenses)
		return err
	}
	v := version()
	_, err := fmt.Fprintf(p.stdout, "paddock %s (commit %s, %s)\n", v.Version, cmp.Or(v.Commit, "unknown"), v.Go)
	return err
}
