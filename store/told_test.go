package store_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// told waits at the store for what q selects, and says how long after begun it was told.
func told(t *testing.T, s *store.Store, q paddock.EventQuery, begun chan time.Time) (paddock.Page[lock.Event], time.Duration) {
	t.Helper()
	q.Wait = lock.MaxWait
	page, err := s.Events(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page, time.Since(<-begun)
}

// atOnce is long for a machine that is busy, and short beside a call's wait.
const atOnce = 10 * time.Second

// TestLossesAreToldAtOtherReplicas: a call waits at one replica, and another one causes the loss.
func TestLossesAreToldAtOtherReplicas(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := open(t, url), open(t, url)
	for what, lose := range map[string]func(lock.Grant, lock.SessionGrant) error{
		"a revoked lease": func(g lock.Grant, _ lock.SessionGrant) error {
			_, err := there.Revoke(t.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Reason: "test"})
			return err
		},
		"a closed session": func(_ lock.Grant, s lock.SessionGrant) error {
			return there.CloseSession(t.Context(), lock.CloseSession{ID: s.ID})
		},
		"a revoked session": func(_ lock.Grant, s lock.SessionGrant) error {
			_, err := there.RevokeSession(t.Context(), lock.RevokeSession{Ref: s.ID.Ref(), Reason: "test"})
			return err
		},
		"an expired session": func(_ lock.Grant, s lock.SessionGrant) error {
			exec(t, connect(t, url), "update paddock.sessions set expires_at = clock_timestamp() where ref = "+strconv.FormatInt(int64(s.ID.Ref()), 10))
			return nil
		},
	} {
		g, s := mustAcquire(t, here, acquire("told")), openSession(t, here, time.Hour, 0)
		now, err := here.Events(t.Context(), paddock.EventQuery{Cursor: paddock.CursorNow})
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan time.Time, 1)
		go func() {
			until(t, "the replica tells that it watches", func() bool {
				return number(t, connect(t, url), "select count(*) from paddock.replicas where watching") > 0
			})
			begun <- time.Now()
			if err := lose(g, s); err != nil {
				t.Error(err)
			}
		}()
		page, took := told(t, here, paddock.EventQuery{
			Names: []string{"other", "told"}, Sessions: []lock.SessionRef{s.ID.Ref()}, Cursor: now.Next,
			Kinds: []lock.Kind{lock.Released, lock.Expired, lock.Revoked},
		}, begun)
		t.Logf("%s is told after %v", what, took)
		switch {
		case took > atOnce:
			t.Errorf("%s is told after %v", what, took)
		case what == "a revoked lease":
			if len(page.Items) != 1 || page.Items[0].Token != g.Token || page.Items[0].Kind != lock.Revoked || page.EndedSessions != nil {
				t.Errorf("%s: %+v", what, page)
			}
			continue
		case !slices.Equal(page.EndedSessions, []lock.SessionRef{s.ID.Ref()}):
			t.Errorf("%s: %+v", what, page)
		}
		mustRelease(t, here, g)
	}
}

// TestACallThatIsFarBehindIsToldOfAGap: it reads one step of the table, and not all events.
func TestACallThatIsFarBehindIsToldOfAGap(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	mustRelease(t, s, mustAcquire(t, s, acquire("a")))
	for range 600 {
		mustRelease(t, s, mustAcquire(t, s, acquire("many")))
	}
	for _, wait := range []time.Duration{0, time.Millisecond} {
		q := paddock.EventQuery{Names: []string{"a", "b"}, Wait: wait}
		page, err := s.Events(t.Context(), q)
		if err != nil || !page.Gap || len(page.Items) > 0 {
			t.Fatalf("from the first event on: %d items, gap %t, %v", len(page.Items), page.Gap, err)
		}
		g := mustAcquire(t, s, acquire("b"))
		q.Cursor, q.Wait = page.Next, lock.MaxWait
		if page, err = s.Events(t.Context(), q); err != nil || page.Gap || len(page.Items) != 1 || page.Items[0].Token != g.Token {
			t.Errorf("after the gap: %+v, %v", page, err)
		}
		mustRelease(t, s, g)
	}
}
