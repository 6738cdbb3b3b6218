package systemtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Traits describe what a system does not support.
type Traits struct {
	Unordered bool // tokens are zero or need not increase
	NoRenewal bool // leases are tied to connections or renewed by the client
}

// Run starts the system and tests it. If it is not installed, the test fails with the package to
// install.
func Run(t *testing.T, s system.System, traits Traits) {
	t.Helper()
	if s.Name() == "" || s.Title() == "" || strings.ContainsAny(s.Name(), " /") {
		t.Errorf("invalid name %q or title %q", s.Name(), s.Title())
	}
	dir := start(t, s)
	t.Run("all", func(t *testing.T) { // returns when its parallel subtests have ended
		for name, test := range map[string]func(*testing.T, system.System, Traits){
			"a lock is handed over":        handOver,
			"one holder at a time":         exclusion,
			"a client holds several locks": several,
			"a wait ends with its context": canceledWait,
			"the processes are running":    processes,
			"a lease can be renewed":       renewal,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s, traits)
			})
		}
	})
	stop(t, s, dir)
}

// start starts the system and returns its directory.
func start(t *testing.T, s system.System) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // PostgreSQL does not run as root
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Start(ctx, dir); err != nil {
		t.Fatal(errors.Join(err, s.Stop()))
	}
	return dir
}

// stop checks that Stop leaves nothing behind and can be repeated.
func stop(t *testing.T, s system.System, dir string) {
	t.Helper()
	running := s.Processes()
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	for _, p := range running {
		if err := syscall.Kill(p.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the %s is still running as process %d: %v", p.Role, p.PID, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the directory, %v", left, err)
	}
	if got := s.Processes(); len(got) > 0 {
		t.Errorf("Processes returns %v after Stop", got)
	}
}

func handOver(t *testing.T, s system.System, traits Traits) {
	a, b := client(t, s), client(t, s)
	first := acquire(t, a, "passed-on", false)
	if _, err := b.Acquire(t.Context(), "passed-on", false); !errors.Is(err, system.ErrHeld) {
		t.Errorf("a second holder got %v", err)
	}
	release(t, first)
	second := acquire(t, b, "passed-on", false)
	if !traits.Unordered && second.Token() <= first.Token() {
		t.Errorf("token %d came after %d", second.Token(), first.Token())
	}
	release(t, second)
}

func exclusion(t *testing.T, s system.System, traits Traits) {
	const clients, rounds = 6, 15
	var holders, last atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		c := client(t, s)
		wg.Go(func() {
			for range rounds {
				l, err := c.Acquire(t.Context(), "contended", true)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				if before := last.Swap(l.Token()); !traits.Unordered && before >= l.Token() {
					t.Errorf("token %d came after %d", l.Token(), before)
				}
				holders.Add(-1)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func several(t *testing.T, s system.System, _ Traits) {
	c := client(t, s)
	var held []system.Lease
	for _, name := range []string{"several:1", "several:2", "several.3", "s"} {
		held = append(held, acquire(t, c, name, true))
	}
	for _, l := range held {
		release(t, l)
	}
}

func canceledWait(t *testing.T, s system.System, _ Traits) {
	a, b := client(t, s), client(t, s)
	l := acquire(t, a, "kept", true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Acquire(ctx, "kept", true); err == nil || errors.Is(err, system.ErrHeld) {
		t.Errorf("the canceled acquire returned %v", err)
	}
	release(t, l)
	release(t, acquire(t, a, "kept", true)) // the canceled waiter does not block the lock
}

func processes(t *testing.T, s system.System, _ Traits) {
	if len(s.Processes()) == 0 {
		t.Error("Processes is empty")
	}
	for _, p := range s.Processes() {
		if err := syscall.Kill(p.PID, 0); err != nil {
			t.Errorf("the %s, process %d: %v", p.Role, p.PID, err)
		}
	}
}

func renewal(t *testing.T, s system.System, traits Traits) {
	l := acquire(t, client(t, s), "renewed", false)
	if err := l.Renew(t.Context()); errors.Is(err, system.ErrUnsupported) != traits.NoRenewal || err != nil && !traits.NoRenewal {
		t.Errorf("got %v", err)
	}
	release(t, l)
}

func client(t *testing.T, s system.System) system.Client {
	t.Helper()
	c, err := s.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func acquire(t *testing.T, c system.Client, name string, wait bool) system.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), name, wait)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return l
}

func release(t *testing.T, l system.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
