//go:build unix

// Package program builds paddock for whole-system tests.
package program

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
)

// Build builds cmd/paddock into the file to, with more flags of go build. The calling test must be two folders below
// the root of the repository. The race detector is built in if the calling program has it.
func Build(ctx context.Context, to string, flags ...string) error {
	args := append([]string{"build", "-C", "../..", "-ldflags", "-s -w", "-o", to}, flags...) // as released, which links faster
	if hasRaceDetector() {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/paddock")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, output)
	}
	return nil
}

func hasRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" {
			return setting.Value == "true"
		}
	}
	return false
}
