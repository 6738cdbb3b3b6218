package arch_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestProgramsOfTheGoSDKLinkFewModules lists the modules that a program links for the client and the guards.
func TestProgramsOfTheGoSDKLinkFewModules(t *testing.T) {
	t.Parallel()
	allowed := []string{module, "github.com/cenkalti/backoff/v5", "github.com/google/uuid", "golang.org/x/sys"}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, path := range linkedModules(t, system, module+"/client", module+"/client/guard") {
			if !slices.Contains(allowed, path) {
				t.Errorf("on %s, programs with the client and the guards link %s; only %v are allowed", system, path, allowed)
			}
		}
	}
}

// linkedModules returns the modules of the packages and of all their dependencies on the operating system.
func linkedModules(t *testing.T, system string, packages ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	paths := map[string]bool{}
	for path := range strings.FieldsSeq(string(out)) {
		paths[path] = true
	}
	return slices.Sorted(maps.Keys(paths))
}

// TestTheCommandHasTimeZones: the image has none of its own, and neither has Windows.
func TestTheCommandHasTimeZones(t *testing.T) {
	t.Parallel()
	if p := list(t, root, "./cmd/paddock")[0]; !slices.Contains(p.Deps, "time/tzdata") {
		t.Error("cmd/paddock does not import time/tzdata, so once_per with a time_zone fails where the system has none")
	}
}
