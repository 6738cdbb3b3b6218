package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestWhoRevokedIsTold to the holders, in the events and in the history, also at another replica.
func TestWhoRevokedIsTold(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := open(t, url), open(t, url)
	alone, session := mustAcquire(t, here, acquire("alone")), openSession(t, here, time.Hour, time.Minute)
	inside := mustAcquire(t, here, inSession("inside", session))
	if _, err := there.Revoke(t.Context(), lock.Revoke{Name: "alone", Token: alone.Token, Reason: "db-3 is gone.", RevokedBy: "ops-anna"}); err != nil {
		t.Fatal(err)
	}
	info, err := there.RevokeSession(t.Context(), lock.RevokeSession{Ref: session.ID.Ref(), Reason: "db-3 is gone", RevokedBy: "ops-anna"})
	if err != nil || info.RevokedBy != "ops-anna" {
		t.Fatalf("%+v, %v", info, err)
	}
	if info, err = here.Session(t.Context(), session.ID.Ref()); err != nil || info.RevokedBy != "ops-anna" {
		t.Errorf("the session is %+v, %v", info, err)
	}
	renew := func(g lock.Grant) error {
		_, err := here.Renew(t.Context(), lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID})
		return err
	}
	_, lost := here.RenewSession(t.Context(), lock.RenewSession{ID: session.ID})
	for what, err := range map[string]error{"the lease": renew(alone), "the session": lost, "the lease of the session": renew(inside)} {
		var e *lock.Error
		if !errors.As(err, &e) || e.Ended != lock.Revoked || e.RevokedBy != "ops-anna" ||
			!strings.Contains(e.Detail, " An operator (key ops-anna) revoked it: db-3 is gone. Stop the work") {
			t.Errorf("%s: %v, %+v", what, err, e)
		}
	}
	for _, name := range []string{"alone", "inside"} {
		if events := eventsOf(t, here, name); len(events) != 2 || events[1].Kind != lock.Revoked || events[1].RevokedBy != "ops-anna" || events[0].RevokedBy != "" {
			t.Errorf("the events of %s are %+v", name, events)
		}
		holds, err := paddock.ReadHolds(t.Context(), here, paddock.HoldQuery{Name: name})
		if err != nil || len(holds.Holds) != 1 || holds.Holds[0].RevokedBy != "ops-anna" {
			t.Errorf("the holds of %s are %+v, %v", name, holds, err)
		}
		var by string
		row := connect(t, url).QueryRow(t.Context(), "select revoked_by from paddock.history where name = $1 and kind = 'revoked'", name)
		if err := row.Scan(&by); err != nil || by != "ops-anna" {
			t.Errorf("the view says that %q revoked %s, %v", by, name, err)
		}
	}
}
