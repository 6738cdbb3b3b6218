package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// builds are the paths of the programs that replicas run.
type builds struct {
	normal string // as released
	skewed string // its wall clock is off by skewVariable
}

// TestMain removes the programs that were built.
func TestMain(m *testing.M) {
	code := testmain.M{M: m}.Run()
	if dir, err := buildDir(); err == nil {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// buildDir is the directory of the programs that all tests share.
var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "paddock-faults-build-") })

// normalBuild builds cmd/paddock and returns its path.
var normalBuild = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "paddock")
	return path, compile(path, false)
})

// program returns the path of cmd/paddock as released.
func program(t *testing.T) string {
	t.Helper()
	path, err := normalBuild()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// skewedBuild builds cmd/paddock with a wall clock that can be off, and returns its path.
func skewedBuild(t *testing.T, raced bool) string {
	t.Helper()
	dir := t.TempDir()
	o := newOverlay(dir)
	path := filepath.Join(dir, "paddock-skewed")
	if err := o.skewWallClock(); err != nil {
		t.Fatal(err)
	}
	if err := compile(path, raced, o.flag(t)); err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds cmd/paddock, with the race detector if raced.
func build(t *testing.T, raced bool) builds {
	t.Helper()
	b := builds{normal: program(t), skewed: skewedBuild(t, raced)}
	if raced {
		b.normal = filepath.Join(t.TempDir(), "paddock")
		if err := compile(b.normal, raced); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// compile builds cmd/paddock.
func compile(to string, raced bool, flags ...string) error {
	// Paddock's module, not this one; linked as released, which is faster.
	args := append([]string{"build", "-C", "../..", "-ldflags", "-s -w", "-o", to}, flags...)
	if raced {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/paddock")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, output)
	}
	return nil
}

// skewVariable is the environment variable with the number of seconds by which the wall clock of a skewed
// build is off.
const skewVariable = "PADDOCK_FAULTS_SKEW"

// The changes to Go's package time in a skewed build. A Go program does not ask
// the C library for the time, so it cannot be faked from outside, and the
// kernel's time namespaces do not change the wall clock.
const (
	skewedFrom = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	skewedTo   = skewedFrom + "\tsec += wallSkew\n"
	skewFile   = `package time

import "syscall"

var wallSkew = readWallSkew()

func readWallSkew() int64 {
	text, ok := syscall.Getenv("` + skewVariable + `")
	if !ok {
		return 0
	}
	seconds, err := atoi(text)
	if err != nil {
		panic("` + skewVariable + ` is not a number")
	}
	return int64(seconds)
}
`
)

// skewWallClock makes time.Now show what skewVariable says.
func (o overlay) skewWallClock() error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	return errors.Join(
		o.change(filepath.Join(folder, "time.go"), skewedFrom, skewedTo),
		o.add(filepath.Join(folder, "wall_skew.go"), skewFile),
	)
}

// An overlay replaces source files for go build -overlay.
type overlay struct {
	dir     string            // where the changed files are written
	replace map[string]string // the path of a file, to that of its replacement
}

func newOverlay(dir string) overlay { return overlay{dir: dir, replace: map[string]string{}} }

// change replaces a text in a file, which must occur exactly once.
func (o overlay) change(file, from, to string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), from); n != 1 {
		return fmt.Errorf("%s contains this text %d times, want once:\n%s", file, n, from)
	}
	return o.add(file, strings.Replace(string(text), from, to, 1))
}

// add adds or replaces a file.
func (o overlay) add(file, text string) error {
	o.replace[file] = filepath.Join(o.dir, filepath.Base(file))
	return os.WriteFile(o.replace[file], []byte(text), 0o600)
}

// flag writes the overlay and returns the flag of go build that uses it.
func (o overlay) flag(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + written(t, o.dir, "overlay.json", text)
}

// written writes a file and returns its path.
func written(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
