package server_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/server"
)

func TestClientsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, clients := new(fakeEvents), new(server.Clients)
		s, _, end := servePiped(t, server.Options{Locks: &fake{events: h.events}, Clients: clients})
		counted := func() [2]int {
			synctest.Wait()
			return [2]int{clients.Connections(), clients.Streams()}
		}
		stream := s.stream("/v1/events/stream", "")
		stream.want(synced("0"))
		if got, want := counted(), [2]int{1, 1}; got != want {
			t.Errorf("with a stream: %v connections and streams, want %v", got, want)
		}
		s.get("/livez").want(t, http.StatusOK, nil)
		if got, want := counted(), [2]int{1, 1}; got != want {
			t.Errorf("after another call: %v connections and streams, want %v", got, want)
		}
		stream.close()
		if got, want := counted(), [2]int{}; got != want {
			t.Errorf("at the end: %v connections and streams, want %v", got, want)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestServiceInfoIsServed, and without a source it is empty.
func TestServiceInfoIsServed(t *testing.T) {
	t.Parallel()
	served := serve(t, server.Options{Locks: &fake{}, Info: func(context.Context) paddock.ServiceInfo {
		return paddock.ServiceInfo{Databases: []paddock.DatabaseInfo{{Cell: "main", Problem: "It is away."}}}
	}}).get("/v1/service")
	want := map[string]any{
		"settings": []any{}, "databases": []any{map[string]any{
			"cell": "main", "problem": "It is away.", "age_ms": 0.0, "event_retention_ms": 0.0,
			"earlier_epochs": []any{}, "replicas": []any{}, "standbys": []any{}, "tables": []any{}, "hidden": []any{},
		}},
	}
	if diff := cmp.Diff(want, served.body); served.StatusCode != http.StatusOK || diff != "" {
		t.Errorf("status %d: %s", served.StatusCode, diff)
	}
	if diff := cmp.Diff(map[string]any{"settings": []any{}, "databases": []any{}}, serve(t, server.Options{Locks: &fake{}}).get("/v1/service").body); diff != "" {
		t.Error(diff)
	}
}
