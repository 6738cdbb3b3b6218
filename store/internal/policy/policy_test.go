package policy

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newCatalog returns the Catalog of another replica, and its epochs.
func newCatalog(t *testing.T, url string) (*Catalog, *epoch.Monitor) {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop(); db.Close() })
	epochs := epoch.New(db)
	return New(db, epochs, nil), epochs
}

// present returns the newest epoch.
func present(t *testing.T, epochs *epoch.Monitor) epoch.Epoch {
	t.Helper()
	e, err := epochs.Refresh()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestASnapshotIsOfOneVersion(t *testing.T) {
	t.Parallel()
	now := epoch.Epoch{Number: 3, PolicyChanges: 2}
	for name, c := range map[string]struct {
		snapshot Snapshot
		want     error
	}{
		"none was read yet":       {Snapshot{}, ErrChanged},
		"the same":                {Snapshot{Version: now.Policy()}, nil},
		"a tree was declared":     {Snapshot{Version: epoch.PolicyVersion{Epoch: 3, Changes: 1}}, ErrChanged},
		"an older epoch was read": {Snapshot{Version: epoch.PolicyVersion{Epoch: 3, Changes: 3}}, ErrChanged},
		"an epoch has started":    {Snapshot{Version: epoch.PolicyVersion{Epoch: 2, Changes: 2}}, ErrChanged},
	} {
		if err := c.snapshot.Check(now); !errors.Is(err, c.want) {
			t.Errorf("%s: Check = %v, want %v", name, err, c.want)
		}
	}
}

func TestANewerSnapshotIsKept(t *testing.T) {
	t.Parallel()
	c := New(nil, nil, nil)
	at := func(number, changes int64) *Snapshot {
		return &Snapshot{Version: epoch.PolicyVersion{Epoch: number, Changes: changes}}
	}
	for _, step := range []struct{ read, newest *Snapshot }{
		{at(1, 0), at(1, 0)},
		{at(1, 2), at(1, 2)},
		{at(1, 1), at(1, 2)}, // read before, by a slower call
		{at(2, 0), at(2, 0)},
		{at(1, 3), at(2, 0)},
	} {
		c.keep(step.read)
		if got := c.Newest().Version; got != step.newest.Version {
			t.Errorf("after %v the newest is %v, want %v", step.read.Version, got, step.newest.Version)
		}
	}
}

// TestAChangeIsFoundByOtherReplicas in each way in which one reads the trees.
func TestAChangeIsFoundByOtherReplicas(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, _ := newCatalog(t, url)
	other, epochs := newCatalog(t, url)
	conn := pgtest.Connect(t, url)
	read := map[string]func(epoch.Epoch) error{
		"by a decision":      func(epoch.Epoch) error { return other.Refresh() },
		"without a command":  other.RefreshIfChanged,
		"by a fenced write":  func(e epoch.Epoch) error { _, err := other.Of(t.Context(), conn, e); return err },
		"by the epoch check": func(epoch.Epoch) error { epochs.Poll(other.RefreshIfChanged); return nil },
	}
	for name, read := range read {
		if err := read(present(t, epochs)); err != nil {
			t.Fatal(err)
		}
		if c, err := one.Declare(t.Context(), "root"); err != nil || c.Tree.Root != "root" || c.Tree.DeclaredAt.IsZero() {
			t.Fatalf("%s: declared %+v, %v", name, c, err)
		}
		e := present(t, epochs)
		if err := other.Newest().Check(e); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: before it the trees are taken for those of the epoch: %v", name, err)
		}
		if err := read(e); err != nil || other.Newest().Check(e) != nil || other.Newest().Trees.Path("root:a") == nil {
			t.Errorf("%s: the newest trees are %+v, %v", name, other.Newest(), err)
		}
		if c, err := one.Remove(t.Context(), "root"); err != nil || c.Tree.Root != "root" || len(c.Busy) > 0 {
			t.Fatalf("%s: removed %+v, %v", name, c, err)
		}
	}
}

// TestATreeIsDeclaredOnlyWithAStandby where one is required, although the replica that declares it has not read the
// trees for long.
func TestATreeIsDeclaredOnlyWithAStandby(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c, _ := newCatalog(t, url)
	pgtest.Exec(t, pgtest.Connect(t, url), "update paddock.epochs set quorum = true")
	if _, err := c.Declare(t.Context(), "root"); !errors.Is(err, database.ErrNoStandby) || !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("declared: %v", err)
	}
	if all, err := List(t.Context(), c.db.Rest, ""); err != nil || len(all) > 0 {
		t.Errorf("the trees are %v, %v", all, err)
	}
}

// TestAVersionIsNotUsedAgain: the trees of an earlier epoch are not those of the next one, although as many changes are
// counted in it.
func TestAVersionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c, epochs := newCatalog(t, url)
	if _, err := c.Declare(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	if err := c.RefreshIfChanged(present(t, epochs)); err != nil {
		t.Fatal(err)
	}
	if err := epoch.Begin(t.Context(), url, "", "test", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Declare(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	e := present(t, epochs)
	if e.Number != 2 || e.PolicyChanges != 1 || !errors.Is(c.Newest().Check(e), ErrChanged) {
		t.Errorf("the trees %+v are taken for those of %+v", c.Newest(), e)
	}
	if err := c.RefreshIfChanged(e); err != nil || len(c.Newest().Trees) != 2 {
		t.Errorf("the newest trees are %v, %v; want those of both epochs", c.Newest().Trees, err)
	}
}
