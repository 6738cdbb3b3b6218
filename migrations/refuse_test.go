package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/schema4"
	"github.com/paddock-lock/paddock/lock"
)

// refusal is the error for replicas of an earlier release. They retry errors of class 57, and answer 503 meanwhile.
const (
	refusalCode    = "57P03"
	refusalMessage = "this replica is of an earlier release than the schema of its database; " +
		"stop it and start the new release"
)

// firstStatements are the statements with which transactions of a replica of schema 4 begin, and parameters for
// them.
func firstStatements() map[string][]any {
	names, hour := []string{"held", "new"}, time.Hour
	return map[string][]any{
		"create_anchors": {names},
		"lock_anchors":   {names},
		"look":           {names},
		"known_anchors":  {names},
		"locked_anchors": {names},
		"read_lock":      {"held"},
		"list_locks":     {"", "", "", "", true, true, true, 10},
		"read_queue":     {names, hour},
		"unseated":       {names, []int64{1, 2}, []int64{3, 4}},
		"events_end":     nil,
		"list_events":    {0, math.MaxInt64, "", "", 10},
		"list_events_of": {0, math.MaxInt64, "held", 10},
		"horizon":        {5},
		"endings":        {[]int64{1}},
		"newest":         nil,
		"census":         {"", 10, hour},
		"prune_events":   {0, 10, hour},
		"prune_locks":    {names, hour},
		"lock_fence":     {"held"},
		"rebase_leases":  {time.Now()},
	}
}

func TestOldReplicasAreRefused(t *testing.T) {
	t.Parallel()
	url, before := schema4WithRows(t)
	for name := range firstStatements() {
		if _, err := before.Prepare(t.Context(), name, schema4.Statement(t, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	up(t, url)
	after := connect(t, url)
	for name, args := range firstStatements() {
		_, err := before.Exec(t.Context(), name, args...)
		assertRefused(t, name+", prepared before the migration", err)
		_, err = after.Exec(t.Context(), schema4.Statement(t, name), args...)
		assertRefused(t, name, err)
	}
}

// TestOldSwapFails checks the statement that commits decisions from a cache. A replica of schema 4 that gets another
// error than a refusal from it uses the other statements.
func TestOldSwapFails(t *testing.T) {
	t.Parallel()
	url, conn := schema4WithRows(t)
	if _, err := conn.Prepare(t.Context(), "swap", schema4.Statement(t, "swap")); err != nil {
		t.Fatal(err)
	}
	up(t, url)
	now := time.Now()
	args := []any{"{}", now, now.Add(time.Hour), 1, nil, 0, now, schema4.MarkSpace}
	if _, err := conn.Exec(t.Context(), "swap", args...); err == nil {
		t.Error("it succeeded")
	}
	if _, err := connect(t, url).Prepare(t.Context(), "swap", schema4.Statement(t, "swap")); err == nil {
		t.Error("it was prepared")
	}
}

func assertRefused(t *testing.T, what string, err error) {
	t.Helper()
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) || pg.Code != refusalCode || pg.Message != refusalMessage || pg.Severity != "ERROR" {
		t.Errorf("%s: %v; want a refusal", what, err)
	}
}

// A loadedReplica grants locks until it is refused, and remembers what it has committed.
type loadedReplica struct {
	*schema4.Replica
	events []lock.Event
}

// run is over when the replica is refused. As replicas do, it repeats a grant that has waited too long for a lock.
func (r *loadedReplica) run(ctx context.Context, n int, granted chan<- struct{}) error {
	for i := 0; ; i++ {
		name := "contended"
		if i%2 == 0 {
			name = fmt.Sprintf("lock %d of %d", i%7, n)
		}
		_, event, err := r.Grant(ctx, name, lock.LeaseID(uuid.New()), time.Minute)
		pg := new(pgconn.PgError)
		if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01") {
			continue
		}
		if err != nil {
			return err
		}
		r.events = append(r.events, event)
		select {
		case granted <- struct{}{}:
		default:
		}
	}
}

// TestMigrationUnderLoad migrates while replicas of schema 4 decide. They are refused from then on, and what they
// have committed is there.
func TestMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	url, conn := schema4Database(t)
	exec(t, conn, "select setval('paddock.event_ids', 8100)")
	var replicas []*loadedReplica
	var running sync.WaitGroup
	granted := make(chan struct{}, 1000)
	for n := range 3 {
		r := &loadedReplica{Replica: schema4.NewReplica(t, url)}
		replicas = append(replicas, r)
		running.Go(func() { assertRefused(t, "a replica of schema 4", r.run(t.Context(), n, granted)) })
	}
	for range 300 {
		<-granted
	}
	up(t, url)
	running.Wait()
	var all []int64
	newest := map[string]lock.Event{}
	for _, r := range replicas {
		for _, e := range r.events {
			all = append(all, e.ID)
			if newest[e.Name].ID < e.ID {
				newest[e.Name] = e
			}
		}
	}
	slices.Sort(all)
	if got := ids(t, conn, "select id from paddock.history order by id"); !slices.Equal(got, all) {
		t.Errorf("there are %d events; want the %d that were committed", len(got), len(all))
	}
	for name, e := range newest {
		const converted = `select count(*) from paddock.records where (name, revision, token, last_event) = ($1, $2, $3, $4 / 4096)`
		if number(t, conn, converted, name, e.Revision, int64(e.Token), e.ID) != 1 {
			t.Errorf("%s was not converted as of its newest event %+v", name, e)
		}
	}
	t.Logf("%d grants were committed before the migration", len(all))
}
