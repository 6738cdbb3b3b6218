package paddock

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/paddock-lock/paddock/bench/daemon"
)

// serve starts a replica on the database, and returns it together with the address that it
// listens on. What it says goes to the directory.
func (d *Deployment) serve(ctx context.Context, dir string) (*daemon.Daemon, string, error) {
	address, err := daemon.Addr()
	if err != nil {
		return nil, "", err
	}
	replica, err := daemon.Start(ctx, daemon.Options{
		Program: d.Binary,
		Args:    append([]string{"serve", "--migrate", "--listen", address}, d.Flags...),
		Env:     []string{"PADDOCK_DATABASE_URL=" + d.DatabaseURL()},
		Dir:     dir, Addr: address, Keep: d.Keep,
	})
	return replica, address, err
}

// migrate makes the tables.
func (d *Deployment) migrate(ctx context.Context) error {
	migrate := exec.CommandContext(ctx, d.Binary, "migrate", "up")
	migrate.Env = append(migrate.Environ(), "PADDOCK_DATABASE_URL="+d.DatabaseURL())
	if said, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", migrate, err, said)
	}
	return nil
}

// Build builds paddock as `make build` does, from the module that this one is in, and
// returns the path of the binary.
func Build(ctx context.Context, dir string) (string, error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paddock-lock/paddock").Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of paddock: %w; run the bench in its own folder, or give it a binary", err)
	}
	binary := filepath.Join(dir, "paddock")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/paddock")
	build.Dir, build.Env = strings.TrimSpace(string(source)), append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building paddock: %w\n%s", err, said)
	}
	return binary, nil
}
