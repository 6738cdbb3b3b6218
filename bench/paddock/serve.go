package paddock

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/paddock-lock/paddock/bench/daemon"
)

// serve starts a replica on the databases and returns it with its address. Its log goes to the directory.
func (d *Deployment) serve(ctx context.Context, dir string) (*daemon.Daemon, string, error) {
	address, err := daemon.Addr()
	if err != nil {
		return nil, "", err
	}
	replica, err := daemon.Start(ctx, daemon.Options{
		Program: d.Binary,
		Args:    append([]string{"serve", "--listen", address}, d.Flags...),
		Env:     []string{d.env()},
		Dir:     dir, Addr: address,
	})
	return replica, address, err
}

// migrate creates the tables.
func (d *Deployment) migrate(ctx context.Context) error {
	migrate := exec.CommandContext(ctx, d.Binary, "migrate", "up")
	migrate.Env = append(migrate.Environ(), d.env())
	if output, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", migrate, err, output)
	}
	return nil
}

// Build builds paddock from the surrounding module, as `make build` does, and returns the path of the
// binary.
func Build(ctx context.Context, dir string) (string, error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paddock-lock/paddock").Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of paddock: %w; run the bench in its own directory, or use -paddock", err)
	}
	binary := filepath.Join(dir, "paddock")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/paddock")
	build.Dir, build.Env = strings.TrimSpace(string(source)), append(build.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building paddock: %w\n%s", err, output)
	}
	return binary, nil
}
