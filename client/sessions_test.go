package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// sessionID is the UUID of leaseID, so that the checks for secrets in errors find it.
var sessionID = lock.SessionID(leaseID)

var (
	sessionName = sessionID.Ref().String()
	sessionJSON = `{"session_id":"` + leaseText + `","session":"` + sessionName + `","holder":"worker-1","ttl_ms":30000,"grace_ms":2000,
		"opened_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901Z","expires_in_ms":29000,
		"revoked_leases":1,"metadata":{"host":"db-3"},"a_later_field":true}`
	sessionInfoJSON = `{"session":"` + sessionName + `","holder":"worker-1","ttl_ms":30000,"grace_ms":2000,
		"opened_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901Z","expires_in_ms":29000,
		"as_of":"2026-01-02T03:04:06.678901Z","leases":1,"places":1,"ended":"revoked","ended_at":"2026-01-02T03:04:06.678901Z","reason":"why",
		"locks":[{"name":"a","mode":"permit","slot":2,"fencing_token":41},{"name":"b","mode":"shared","place":7}]}`
)

func TestASessionThatWasNotAskedForIsRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"another session_id":  strings.Replace(sessionJSON, leaseText[:8], "00000000", 1),
		"another public name": strings.Replace(sessionJSON, sessionName, "0000000000000001", 1),
		"a lease":             leaseJSON,
	} {
		c := over(t, saying(http.StatusOK, "application/json", body))
		_, err := c.OpenSession(t.Context(), lock.OpenSession{ID: sessionID, Holder: "worker-1"})
		expect(t, name, err, lock.ErrUnknownOutcome)
		_, err = c.RenewSession(t.Context(), lock.RenewSession{ID: sessionID})
		expect(t, name, err, lock.ErrUnknownOutcome)
	}
	for name, body := range map[string]string{
		"another session": strings.Replace(sessionInfoJSON, sessionName, "0000000000000001", 1),
		"no locks":        strings.Replace(sessionInfoJSON, `"locks"`, `"lock"`, 1),
	} {
		_, err := over(t, saying(http.StatusOK, "application/json", body)).Session(t.Context(), sessionID.Ref())
		expect(t, name, err, lock.ErrUnavailable)
	}
	other := strings.Replace(leaseJSON, `"slot":2`, `"slot":2,"session":"`+sessionName+`"`, 1)
	_, err := acquire(over(t, saying(http.StatusCreated, "application/json", other)), t)
	expect(t, "a lease of a session, though none was named", err, lock.ErrUnknownOutcome)
}

func TestInvalidSessionCallsAreNotSent(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", r.Method, r.URL)
		return reply(r, http.StatusOK, "application/json", sessionInfoJSON), nil
	})
	for _, ref := range []lock.SessionRef{0, -1} {
		_, err := c.Session(t.Context(), ref)
		expect(t, "Session", err, lock.ErrNotFound)
		_, err = c.RevokeSession(t.Context(), lock.RevokeSession{Ref: ref, Reason: "why"})
		expect(t, "RevokeSession", err, lock.ErrNotFound)
	}
	_, err := c.OpenSession(t.Context(), lock.OpenSession{Holder: "\xff"})
	expect(t, "a holder that JSON would change", err, lock.ErrInvalid)
	_, err = c.OpenSession(t.Context(), lock.OpenSession{Holder: "h", Metadata: json.RawMessage(`{`)})
	expect(t, "metadata that is no JSON", err, lock.ErrInvalid)
	_, err = c.RevokeSession(t.Context(), lock.RevokeSession{Ref: sessionID.Ref(), Reason: "\xff"})
	expect(t, "a reason that JSON would change", err, lock.ErrInvalid)
}

func TestASessionWithoutIDSendsOneOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[any]bool{}
	for range 3 {
		var r request
		_, err := over(t, heard(&r, http.StatusConflict, "{}")).OpenSession(t.Context(), lock.OpenSession{Holder: "h"})
		if id, ok := r.body["session_id"].(string); err == nil || !ok || len(id) != 36 || id[14] != '4' || seen[id] {
			t.Errorf("sent the session_id %v, want a new UUID of version 4: %v", r.body["session_id"], err)
		}
		seen[r.body["session_id"]] = true
	}
}
