package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestTwoDeploymentsInOneDatabaseShareNothing runs two, each in a schema and a process of its own, on the same lock.
func TestTwoDeploymentsInOneDatabaseShareNothing(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	conn := pgtest.Connect(t, databaseURL)
	deploy := func(schema, application string) *harness {
		p, base := startServe(t, databaseURL, "--migrate", "--schema="+schema)
		p.Stderr.Await(t, `"schema":"(`+schema+`)"`)
		for path, want := range map[string]string{"/version": `"schema":"` + schema + `"`, "/metrics": `,schema="` + schema + `",`, "/ui/": ", schema " + schema + "<"} {
			await.Until(t, path+" names the schema "+schema, func() bool { return strings.Contains(proctest.Scrape(t, base+path), want) })
		}
		if pgtest.Number(t, conn, "select count(*) from pg_stat_activity where datname = current_database() and application_name = $1", application) == 0 {
			t.Errorf("no connection is of %s", application)
		}
		return &harness{T: t, base: base, locks: replica.Connect(t, client.Options{BaseURL: base}),
			env: map[string]string{"PADDOCK_DATABASE_URL": databaseURL, "PADDOCK_SCHEMA": schema}}
	}
	a, b := deploy("paddock", "paddock"), deploy("team_b", "paddock/team_b")
	a.holdMany("other", 3) // so that their tokens differ
	first := map[*harness]lock.Grant{}
	for _, d := range []*harness{a, b} {
		first[d] = d.hold(lock.Acquire{Locks: lock.One("lock"), Holder: "first"})
		d.enqueue(lock.Acquire{Locks: lock.One("lock"), Holder: "next"})
	}
	expectNext := func(d *harness) {
		t.Helper()
		mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{"lock"}, LeaseID: first[d].ID}))
		if e := d.awaitEvent("lock", lock.Granted, "next"); e.Token <= first[d].Token {
			t.Errorf("the waiter has the token %d after %d", e.Token, first[d].Token)
		}
	}
	expectNext(b)
	if l := a.stateOf("lock"); l.Waiters != 1 || l.Token != first[a].Token || l.Token == first[b].Token || l.Revision != 2 {
		t.Errorf("a release in the other deployment left %+v", l)
	}

	b.expectExit(exitOK, "epoch", "new", "--reason=test")
	for d, want := range map[*harness]int{a: 1, b: 2} {
		var epochs []epochJSON
		if stdout, _ := d.expectExit(exitOK, "epoch", "list", "-o", "json"); json.Unmarshal([]byte(stdout), &epochs) != nil || len(epochs) != want {
			t.Errorf("%s has the epochs %s; want %d", d.env["PADDOCK_SCHEMA"], stdout, want)
		}
	}
	b.expectExit(exitOK, "migrate", "down", "--to=0", "--yes")
	expectReady(t, a.base)
	expectNext(a)
}
