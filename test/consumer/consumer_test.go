package consumer_test

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root    = "../.."
	modPath = "github.com/paddock-lock/paddock"
	version = "v0.0.0-local"

	maxSumLines = 60
)

// linkable are the modules that a program may link for the client and the guards.
var linkable = []string{
	modPath,
	"github.com/cenkalti/backoff/v5",
	"github.com/google/uuid",
	"golang.org/x/sys",
}

const program = `package main

import (
	"context"
	"log"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
)

func main() {
	locks, err := client.New(client.Options{BaseURL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	work := func(context.Context, *guard.Lease) error { return nil }
	if err := guard.Do(context.Background(), locks, "jobs:nightly", guard.Options{Holder: "worker-1"}, work); err != nil {
		log.Fatal(err)
	}
}
`

// TestProgramWithTheGoSDKLinksFewModules publishes the working tree in a module proxy on disk, and builds a program
// that requires it with an empty module cache.
func TestProgramWithTheGoSDKLinksFewModules(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.run("go", "mod", "tidy")
	p.run("go", "build", "-o", "program", ".")

	linked := p.linked()
	for _, path := range linked {
		if !slices.Contains(linkable, path) {
			t.Errorf("the program links %s; only %v are allowed", path, linkable)
		}
	}
	goSum, err := os.ReadFile(filepath.Join(p.dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	sums := bytes.Count(goSum, []byte("\n"))
	if sums > maxSumLines {
		t.Errorf("go.sum has %d lines, at most %d are allowed:\n%s", sums, maxSumLines, goSum)
	}
	archives, size := p.archives()
	t.Logf("linked modules %v; modules in the graph: %d; lines in go.sum: %d; archives in the module cache: %d, %.1f MB",
		linked, strings.Count(p.run("go", "list", "-m", "all"), "\n")-1, sums, archives, float64(size)/1e6)
}

// A consumer is the module of a program, in a folder of its own, with a module cache of its own.
type consumer struct {
	*testing.T
	dir, cache string
	env        []string
}

func newProgram(t *testing.T) consumer {
	t.Helper()
	proxy := t.TempDir()
	publish(t, proxy)
	downloaded, upstream := goEnv(t, "GOMODCACHE"), goEnv(t, "GOPROXY")
	c := consumer{T: t, dir: t.TempDir(), cache: t.TempDir()}
	c.env = append(os.Environ(),
		"GOMODCACHE="+c.cache,
		"GOPROXY="+strings.Join([]string{fileURL(proxy), fileURL(filepath.Join(downloaded, "cache", "download")), upstream}, ","),
		"GOFLAGS=-modcacherw", // so that TempDir can remove it
		"GOSUMDB=off",         // has no checksum of the working tree
		"GOPRIVATE=", "GONOPROXY=", "GOWORK=off",
	)
	write(t, filepath.Join(c.dir, "main.go"), []byte(program))
	c.run("go", "mod", "init", "example.com/program")
	c.run("go", "mod", "edit", "-require="+modPath+"@"+version)
	return c
}

// publish adds the working tree to a proxy of the GOPROXY protocol on disk.
func publish(t *testing.T, proxy string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": []byte(`{"Version":"` + version + `"}`),
		version + ".mod":  mod,
		version + ".zip":  archive(t),
	} {
		write(t, filepath.Join(proxy, filepath.FromSlash(modPath), "@v", name), content)
	}
}

// archive returns the archive of the root module: the working tree without other modules and what is installed or
// built.
func archive(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := w.Create(modPath + "@" + version + "/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return err
	})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// linked returns the modules that are linked into the program.
func (c consumer) linked() (paths []string) {
	c.Helper()
	info, err := buildinfo.ReadFile(filepath.Join(c.dir, "program"))
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range info.Deps {
		paths = append(paths, m.Path)
	}
	return paths
}

// archives returns the number and the size of the archives that the go command downloaded for the program.
func (c consumer) archives() (n int, size int64) {
	c.Helper()
	err := filepath.WalkDir(filepath.Join(c.cache, "cache", "download"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".zip" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n, size = n+1, size+info.Size()
		}
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return n, size
}

// run runs a command in the folder of the program and returns its output.
func (c consumer) run(name string, args ...string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = c.dir, c.env, &stderr
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err = errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// fileURL returns the URL of a folder as GOPROXY has it.
func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}
