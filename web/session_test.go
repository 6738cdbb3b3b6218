package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// TestALeaseNamesItsSession, by the public name, and another one none.
func TestALeaseNamesItsSession(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	s, err := locks.OpenSession(t.Context(), lock.OpenSession{Holder: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []lock.Acquire{
		{Name: "a", Holder: "worker-1", Mode: lock.Shared, SessionID: s.ID}, {Name: "a", Holder: "worker-2", Mode: lock.Shared},
	} {
		if _, err := locks.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/ui/locks/a", "/ui/"} {
		answer := httptest.NewRecorder()
		web.New(web.Options{Locks: locks}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		page := answer.Body.String()
		if answer.Code != http.StatusOK || strings.Count(page, "<small>session ") != 1 || !strings.Contains(page, "session "+s.ID.Ref().String()) {
			t.Errorf("%s: %d\n%s", path, answer.Code, page)
		}
		if strings.Contains(page, uuid.UUID(s.ID).String()) {
			t.Errorf("%s shows the session_id, which is a secret", path)
		}
	}
}
