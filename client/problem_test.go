package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/lock"
)

func problem(members string) string {
	return `{"type":"about:blank","title":"T","status":409,"detail":"D.","request_id":"r1",` + members + `}`
}

// Problems, and the errors that they become.
var problems = map[string]struct {
	status  int
	members string
	want    lock.Error
}{
	"invalid_request with the pointer's field": {400, `"code":"invalid_request","pointer":"/ttl_ms"`,
		lock.Error{Code: lock.ErrInvalid, Field: "ttl_ms"}},
	"invalid_request with the parameter": {400, `"code":"invalid_request","pointer":"state"`,
		lock.Error{Code: lock.ErrInvalid, Field: "state"}},
	"lock_held": {409, `"code":"lock_held","holder":"w","newest_token":41,"retry_after_ms":21340`,
		lock.Error{Code: lock.ErrHeld, Holder: "w", Newest: 41, RetryAfter: 21340 * time.Millisecond}},
	"lock_held after a wait, with the place kept": {409,
		`"code":"lock_held","holder":"w","newest_token":41,"retry_after_ms":1,"suspect":true,"waiters_ahead":3,"place_kept_ms":10000`,
		lock.Error{Code: lock.ErrHeld, Holder: "w", Newest: 41, RetryAfter: time.Millisecond, Suspect: true, Ahead: 3, KeptFor: 10 * time.Second}},
	"capacity_mismatch": {409, `"code":"capacity_mismatch","capacity":3`,
		lock.Error{Code: lock.ErrCapacityMismatch, Capacity: 3}},
	"too_many_waiters": {429, `"code":"too_many_waiters","waiters_ahead":1000,"retry_after_ms":500`,
		lock.Error{Code: lock.ErrTooManyWaiters, Ahead: 1000, RetryAfter: 500 * time.Millisecond}},
	"lease_lost by revocation": {409,
		`"code":"lease_lost","ended":"revoked","ended_at":"2026-01-02T03:04:05.5Z","reason":"moved","fencing_token":41`,
		lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Revoked, Reason: "moved", Token: 41,
			EndedAt: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)}},
	"lease_lost, nobody knows how": {409, `"code":"lease_lost"`, lock.Error{Code: lock.ErrLeaseLost}},
	"session_lost by revocation": {409, `"code":"session_lost","ended":"revoked","ended_at":"2026-01-02T03:04:05.5Z","reason":"moved"`,
		lock.Error{Code: lock.ErrSessionLost, Ended: lock.Revoked, Reason: "moved", EndedAt: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)}},
	"session_lost, nobody knows how": {409, `"code":"session_lost"`, lock.Error{Code: lock.ErrSessionLost}},
	"session_id_in_use":              {409, `"code":"session_id_in_use"`, lock.Error{Code: lock.ErrSessionIDInUse}},
	"lease_id_in_use":                {409, `"code":"lease_id_in_use"`, lock.Error{Code: lock.ErrLeaseIDInUse}},
	"lease_in_set":                   {409, `"code":"lease_in_set","set":["a","b"]`, lock.Error{Code: lock.ErrLeaseInSet, Set: []string{"a", "b"}}},
	"lock_held of a set": {409,
		`"code":"lock_held","holder":"w","retry_after_ms":5,"blockers":[{"name":"a","holder":"w","retry_after_ms":5},{"name":"b","retry_after_ms":0,"ahead":2}]`,
		lock.Error{Code: lock.ErrHeld, Holder: "w", RetryAfter: 5 * time.Millisecond, Blocked: []lock.BlockedLock{
			{Name: "a", Holder: "w", RetryAfter: 5 * time.Millisecond}, {Name: "b", Ahead: 2},
		}}},
	"invalid_request with a pointer into a list": {400, `"code":"invalid_request","pointer":"/locks/3/name"`,
		lock.Error{Code: lock.ErrInvalid, Field: "locks/3/name"}},
	"token_mismatch": {409, `"code":"token_mismatch","fencing_token":41,"newest_token":42`,
		lock.Error{Code: lock.ErrTokenMismatch, Token: 41, Newest: 42}},
	"stale_token": {412, `"code":"stale_token","fencing_token":41,"newest_token":42`,
		lock.Error{Code: lock.ErrStaleToken, Token: 41, Newest: 42}},
	"unknown_token": {412, `"code":"unknown_token","fencing_token":41,"newest_token":0`,
		lock.Error{Code: lock.ErrUnknownToken, Token: 41}},
	"version_mismatch": {409, `"code":"version_mismatch","version":2`,
		lock.Error{Code: lock.ErrVersionMismatch, Version: 2}},
	"not_found": {404, `"code":"not_found"`, lock.Error{Code: lock.ErrNotFound}},
	"unavailable": {503, `"code":"unavailable","retry_after_ms":1000`,
		lock.Error{Code: lock.ErrUnavailable, RetryAfter: time.Second}},
	"unknown_outcome":              {503, `"code":"unknown_outcome"`, lock.Error{Code: lock.ErrUnknownOutcome}},
	"internal":                     {500, `"code":"internal"`, lock.Error{Code: lock.ErrInternal}},
	"a code of the transport":      {413, `"code":"body_too_large"`, lock.Error{Code: "body_too_large"}},
	"a code that is not known yet": {409, `"code":"deadlock"`, lock.Error{Code: "deadlock"}},
}

func TestAProblemBecomesItsError(t *testing.T) {
	t.Parallel()
	for name, c := range problems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := acquire(over(t, saying(c.status, "application/problem+json", problem(c.members))), t)
			var got *lock.Error
			if !errors.As(err, &got) || !errors.Is(err, c.want.Code) {
				t.Fatalf("the error is %v, want the code %s", err, c.want.Code)
			}
			c.want.Detail = "D."
			if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(lock.Error{}, "Cause")); diff != "" {
				t.Errorf("the error differs (-want +got):\n%s", diff)
			}
			if got.Cause == nil || !strings.Contains(got.Cause.Error(), "r1") {
				t.Errorf("the cause is %v, want it to name the request_id", got.Cause)
			}
		})
	}
}

// TestGraceLeftCountsFromTheRequest: the answer takes two of the five seconds.
func TestGraceLeftCountsFromTheRequest(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		_, err := acquire(r.Client, r.T)
		var e *lock.Error
		if !errors.As(err, &e) || e.GraceLeft != 3*time.Second {
			t.Errorf("the error is %#v, want 3 s of the grace to be left", err)
		}
	}, func(req *http.Request) (*http.Response, error) {
		time.Sleep(2 * time.Second)
		return reply(req, http.StatusConflict, "application/problem+json", problem(`"code":"lease_lost","ended":"revoked","grace_left_ms":5000`)), nil
	})
}

func TestRetryAfterIsTakenFromTheHeaderWhereTheBodyHasNone(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"application/problem+json": problem(`"code":"unavailable"`),
		"text/html":                "<html>no backend</html>",
	} {
		_, err := acquire(over(t, func(r *http.Request) (*http.Response, error) {
			res := reply(r, http.StatusServiceUnavailable, name, body)
			res.Header.Set("Retry-After", "7")
			return res, nil
		}), t)
		var got *lock.Error
		if !errors.As(err, &got) || got.RetryAfter != 7*time.Second {
			t.Errorf("%s: the error is %#v, want it to say 7s", name, err)
		}
	}
}

func TestEveryCodeOfTheDomainCrossesTheWire(t *testing.T) {
	t.Parallel()
	for _, code := range lock.Codes() {
		body := problem(`"code":"` + string(code) + `"`)
		err := read(over(t, saying(http.StatusConflict, "application/problem+json", body)), t)
		if !errors.Is(err, code) {
			t.Errorf("%s became %v", code, err)
		}
	}
}
