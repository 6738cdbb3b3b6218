package deployment_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTwoReplicasConform sends each call of the conformance suite to one of two processes on one database, as a load
// balancer would.
func TestTwoReplicasConform(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	_, first := paddock.Serve(t, databaseURL)
	_, second := paddock.Serve(t, databaseURL)
	both := locktest.AtRandom(connect(t, first), connect(t, second))
	locktest.Run(t, func(*testing.T) lock.Service { return both })
}

// TestGrantSurvivesACrashOfEverything kills replica and database right after a grant was answered.
func TestGrantSurvivesACrashOfEverything(t *testing.T) {
	t.Parallel()
	db, databaseURL := pgtest.Server(t)
	mine := lock.Acquire{Name: "jobs:nightly", Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())}
	p, base := paddock.Serve(t, databaseURL)
	before := acquire(t, base, mine)
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Signal(t, syscall.SIGKILL)
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, base = paddock.Serve(t, databaseURL)
	after := acquire(t, base, mine)
	if !after.Replayed || after.Token != before.Token || !after.ExpiresAt.Equal(before.ExpiresAt) {
		t.Errorf("after the crash the lease is %+v, was %+v", after, before)
	}
	if other := acquire(t, base, lock.Acquire{Name: "another", Holder: "me"}); other.Token <= before.Token {
		t.Errorf("token %d was granted after %d", other.Token, before.Token)
	}
}

func TestGrantSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	mine := lock.Acquire{Name: "jobs:nightly", Holder: "me", TTL: time.Hour, LeaseID: lock.LeaseID(uuid.New())}

	p, base := paddock.Serve(t, databaseURL)
	before := acquire(t, base, mine)
	if code := p.Signal(t, syscall.SIGKILL); code != -1 {
		t.Fatalf("exit code %d after SIGKILL", code)
	}

	_, base = paddock.Serve(t, databaseURL)
	after := acquire(t, base, mine)
	if !after.Replayed || after.Token != before.Token {
		t.Errorf("token %d, replayed %t: want %d once more", after.Token, after.Replayed, before.Token)
	}
	if err := connect(t, base).Release(t.Context(), lock.Release{Name: mine.Name, LeaseID: mine.LeaseID}); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, base, lock.Acquire{Name: mine.Name, Holder: "another holder"})
	if next.Token <= before.Token {
		t.Errorf("token %d was granted after %d", next.Token, before.Token)
	}
}
