//go:build unix

package debs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Tree is a directory that packages are unpacked into.
type Tree struct {
	// Dir contains the files of the packages: usr/bin, usr/lib, ...
	Dir string

	// Work keeps the lists of packages between fetches, about 30 MB. Two processes must not use it at once.
	Work string
}

// Check returns an error unless this system has the programs that the other functions need.
func Check() error {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed", program)
		}
	}
	return nil
}

// Update fetches the lists of packages of this system's sources.
func (t Tree) Update(ctx context.Context) error {
	if err := t.configure(); err != nil {
		return err
	}
	_, err := t.run(ctx, "apt-get", "update")
	return err
}

// Depends returns the packages that a package depends on directly.
func (t Tree) Depends(ctx context.Context, name string) ([]string, error) {
	out, err := t.run(ctx, "apt-cache", "depends", "--important", name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^\s*\|?Depends: ([^<\s]+)`).FindAllStringSubmatch(out, -1) {
		names = append(names, match[1])
	}
	return names, nil
}

// Unpack downloads the packages and those they need that are not installed, and unpacks them.
func (t Tree) Unpack(ctx context.Context, names ...string) error {
	archives := filepath.Join(t.Work, "cache", "archives")
	if err := removeFiles(filepath.Join(archives, "*.deb")); err != nil {
		return err
	}
	// With --reinstall the packages are downloaded even if they are installed: a caller that asks did not find them.
	args := append([]string{"install", "--download-only", "--reinstall"}, names...)
	if _, err := t.run(ctx, "apt-get", args...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("apt-get downloaded nothing for %s", strings.Join(names, " "))
	}
	for _, file := range files {
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "--extract", file, t.Dir)); err != nil {
			return err
		}
	}
	return removeFiles(filepath.Join(archives, "*.deb"))
}

// Expose writes a script bin/NAME that runs an unpacked program, at a path relative to the tree, with the unpacked
// libraries. The script works wherever the tree is moved to, but not through a link. It becomes the program, so that
// both have one process ID. Variables are further environment variables, in which $tree is the tree's path.
func (t Tree) Expose(program string, variables ...string) error {
	libraries, err := t.libraries()
	if err != nil {
		return err
	}
	script := "#!/bin/sh\ntree=${0%/*}/..\n"
	for _, v := range append(variables, "LD_LIBRARY_PATH="+libraries+"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}") {
		name, value, _ := strings.Cut(v, "=")
		script += fmt.Sprintf("%s=\"%s\"\nexport %s\n", name, value, name)
	}
	script += fmt.Sprintf("exec \"$tree/%s\" \"$@\"\n", program)
	path := filepath.Join(t.Dir, "bin", filepath.Base(program))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(script), 0o755)
}

// libraries returns the directories of the unpacked libraries, as a script of Expose names them. Some packages have a
// directory of their own, which their programs would find by its absolute path.
func (t Tree) libraries() (string, error) {
	var libraries []string
	err := filepath.WalkDir(t.Dir, func(path string, entry fs.DirEntry, err error) error {
		if matched, _ := filepath.Match("lib*.so*", entry.Name()); err != nil || !matched || entry.IsDir() {
			return err
		}
		dir, err := filepath.Rel(t.Dir, filepath.Dir(path))
		if dir = "$tree/" + dir; !slices.Contains(libraries, dir) {
			libraries = append(libraries, dir)
		}
		return err
	})
	slices.SortStableFunc(libraries, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return strings.Join(libraries, ":"), err
}

// configure writes the configuration of apt-get. The hooks of the system's configuration are for root.
func (t Tree) configure() error {
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(t.Work, dir), 0o755); err != nil {
			return err
		}
	}
	text := fmt.Sprintf(`Dir::State "%[1]s/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Log "%[1]s";
Debug::NoLocking "true";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
// Otherwise a source that fails is a warning, and an older list or none is used.
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Install::Pre-Invoke;
#clear APT::Keep-Downloaded-Packages;
APT::Keep-Downloaded-Packages "true";
`, t.Work)
	return os.WriteFile(t.config(), []byte(text), 0o644)
}

func (t Tree) config() string { return filepath.Join(t.Work, "apt.conf") }

func (t Tree) run(ctx context.Context, program string, args ...string) (string, error) {
	args = append([]string{"--quiet=2", "--config-file=" + t.config()}, args...)
	return output(exec.CommandContext(ctx, program, args...))
}

// output runs a command and returns its output. Its error ends with what the command says is wrong.
func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	// apt-get has children that download: they end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %s", filepath.Base(cmd.Path), complaint(errs.String(), err))
	}
	return out.String(), nil
}

// complaint returns the first error that a command reports, else err.
func complaint(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "E: ") })
	return cmp.Or(strings.TrimPrefix(lines[max(first, 0)], "E: "), err.Error())
}

func removeFiles(pattern string) error {
	paths, err := filepath.Glob(pattern)
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
