//go:build unix

package pgtest

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestUsersShareAServerUntilTheLastLeaves also kills the keeper, after which the next user starts another one.
func TestUsersShareAServerUntilTheLastLeaves(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	if err := os.WriteFile(f.linger(), []byte("500ms"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	users := make([]*server, 3)
	for i := range users {
		all.Go(func() { users[i] = mustJoin(t, f) })
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if users[0].admin != users[1].admin || users[1].admin != users[2].admin {
		t.Errorf("the servers are %s, %s and %s", users[0].admin, users[1].admin, users[2].admin)
	}
	killKeeper(t, f)
	users = append(users, mustJoin(t, f))
	if err := exec(t.Context(), users[3].admin, "select 1"); err != nil {
		t.Errorf("after its keeper was killed, the server does not answer: %v", err)
	}
	for _, u := range users {
		if err := u.stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	awaitKeeper(t, f)
	if err := exec(t.Context(), users[3].admin, "select 1"); err == nil {
		t.Error("the server answers after its last user has left")
	}
}

func mustJoin(t *testing.T, f folder) *server {
	s, err := f.join(t.Context())
	if err != nil {
		t.Error(err)
	}
	return s
}

func killKeeper(t *testing.T, f folder) {
	t.Helper()
	n, err := f.read()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n.Keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitKeeper(t, f)
}

// awaitKeeper returns when no keeper lives.
func awaitKeeper(t *testing.T, f folder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		alive, err := isLocked(f.keeper())
		if err != nil {
			t.Fatal(err)
		}
		if !alive {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the keeper does not end")
		}
	}
}
