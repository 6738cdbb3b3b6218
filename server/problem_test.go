package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// httpCodes returns the codes of HTTP, beside those of the domain.
func httpCodes() []lock.Code {
	return []lock.Code{
		server.ErrNoRoute, server.ErrMethodNotAllowed, server.ErrCrossOrigin, server.ErrBodyTooLarge, server.ErrHeaderTooLarge, server.ErrUnsupportedMediaType,
	}
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	t.Parallel()
	schema, statuses := readDocument(t).Components.Schemas["Code"], server.Statuses()
	var described, ours []string
	for _, code := range schema.Enum {
		described = append(described, code.(string))
	}
	for _, code := range append(lock.Codes(), httpCodes()...) {
		ours = append(ours, string(code))
		row := fmt.Sprintf("| `%s` | %d |", code, statuses[code])
		if http.StatusText(statuses[code]) == "" || !strings.Contains(schema.Description, row) {
			t.Errorf("openapi.yaml has no row %s", row)
		}
	}
	slices.Sort(described)
	if slices.Sort(ours); !slices.Equal(described, ours) {
		t.Errorf("openapi.yaml has the codes\n%q, the service\n%q", described, ours)
	}
	if len(statuses) != len(ours) {
		t.Errorf("%d of %d codes have a status", len(statuses), len(ours))
	}
}

// refusing returns a harness whose acquires all fail with *err.
func refusing(t *testing.T, err *error) harness {
	t.Helper()
	return serve(t, server.Options{Locks: &fake{acquire: func(context.Context, lock.Acquire) (lock.Grant, error) {
		return lock.Grant{}, *err
	}}})
}

// A refusal is an error of the Service, and the answer it must give.
type refusal struct {
	err     *lock.Error
	status  int
	retry   string // Retry-After
	members map[string]any
}

func wantRefusals(t *testing.T, cases []refusal) {
	t.Helper()
	var err error
	s := refusing(t, &err)
	for _, c := range cases {
		err = fmt.Errorf("wrapped: %w", c.err)
		got := s.post(acquirePath, `{"holder": "a"}`)
		got.want(t, c.status, map[string]any{"code": string(c.err.Code)})
		got.want(t, c.status, c.members)
		if retry := got.Header.Get("Retry-After"); retry != c.retry {
			t.Errorf("%s: Retry-After %q, want %q", c.err.Code, retry, c.retry)
		}
	}
}

func TestRefusalsHaveTheirMembers(t *testing.T) {
	t.Parallel()
	wantRefusals(t, []refusal{
		{
			&lock.Error{Code: lock.ErrHeld, Detail: "It is held by somebody else.", Holder: "w", Newest: 41, RetryAfter: 1500*time.Millisecond + 1},
			409, "2", map[string]any{"holder": "w", "newest_token": 41.0, "retry_after_ms": 1501.0, "fencing_token": nil},
		},
		{
			&lock.Error{Code: lock.ErrLeaseLost, Detail: "An operator revoked it: r.", Ended: lock.Revoked, EndedAt: instant, Reason: "r", RevokedBy: "ops-anna", Token: 41},
			409, "", map[string]any{"ended": "revoked", "ended_at": "2026-01-02T03:04:05.678901Z", "reason": "r", "revoked_by": "ops-anna", "fencing_token": 41.0},
		},
		{&lock.Error{Code: lock.ErrLeaseLost}, 409, "", map[string]any{"ended": nil, "ended_at": nil, "fencing_token": nil, "retry_after_ms": nil}},
		{
			&lock.Error{Code: lock.ErrSessionLost, Detail: "An operator revoked it: r.", Ended: lock.Revoked, EndedAt: instant, Reason: "r"},
			409, "", map[string]any{"ended": "revoked", "ended_at": "2026-01-02T03:04:05.678901Z", "reason": "r", "revoked_by": nil, "fencing_token": nil},
		},
		{&lock.Error{Code: lock.ErrLeaseInSet}, 409, "", map[string]any{"set": nil, "blockers": nil}},
		{&lock.Error{Code: lock.ErrSessionIDInUse}, 409, "", map[string]any{"pointer": nil, "ended": nil}},
		{&lock.Error{Code: lock.ErrUnavailable}, 503, "1", map[string]any{"retry_after_ms": 1000.0}},
		{&lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: 2 * time.Second}, 503, "2", map[string]any{"retry_after_ms": 2000.0}},
		{&lock.Error{Code: lock.ErrLeaseIDInUse}, 409, "", map[string]any{"pointer": nil}},
		{&lock.Error{Code: lock.ErrInvalid, Field: "ttl_ms", Detail: "ttl_ms breaks a bound of this deployment."}, 400, "", map[string]any{"pointer": "/ttl_ms"}},
		{
			&lock.Error{Code: lock.ErrHeld, Detail: "Others wait for it, too.", Ahead: 3, KeptFor: 10 * time.Second},
			409, "", map[string]any{"waiters_ahead": 3.0, "place_kept_ms": 10000.0, "capacity": nil},
		},
		{
			&lock.Error{Code: lock.ErrAlreadyDone, Detail: "The work of a is done: w has done it.", Holder: "w", DoneAt: instant, RetryAfter: time.Hour},
			409, "3600", map[string]any{"holder": "w", "done_at": "2026-01-02T03:04:05.678901Z", "retry_after_ms": 3600000.0, "reason": nil, "frozen_by": nil},
		},
		{
			&lock.Error{Code: lock.ErrFrozen, Detail: "An operator has frozen a: r.", Reason: "r", FrozenBy: "ops-anna", RetryAfter: 10 * time.Second},
			409, "10", map[string]any{"reason": "r", "frozen_by": "ops-anna", "frozen_until": nil, "retry_after_ms": 10000.0, "done_at": nil, "holder": nil},
		},
		{
			&lock.Error{Code: lock.ErrFrozen, Detail: "An operator has frozen a: r.", Reason: "r", FrozenUntil: instant, RetryAfter: time.Hour},
			409, "3600", map[string]any{"frozen_until": "2026-01-02T03:04:05.678901Z"},
		},
		{&lock.Error{Code: lock.ErrHeld}, 409, "", map[string]any{"waiters_ahead": nil, "place_kept_ms": nil}},
		{&lock.Error{Code: lock.ErrCapacityMismatch, Capacity: 3}, 409, "", map[string]any{"capacity": 3.0, "waiters_ahead": nil}},
		{&lock.Error{Code: lock.ErrTooManyWaiters}, 429, "1", map[string]any{"retry_after_ms": 1000.0}},
		{&lock.Error{Code: lock.ErrTooManyWaiters, RetryAfter: 2500 * time.Millisecond, Ahead: 7}, 429, "3", map[string]any{"waiters_ahead": 7.0}},
	})
}

func TestMeaningfulZerosAreSent(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	s.post("/v1/locks/a/revoke", `{"fencing_token": 7, "reason": "r"}`).
		want(t, 409, map[string]any{"code": "token_mismatch", "fencing_token": 7.0, "newest_token": 0.0})
	write := `{"lock": "a", "fencing_token": 7, "value": 1`
	s.send("PUT", "/v1/fenced/k", write+`}`).
		want(t, 412, map[string]any{"code": "unknown_token", "fencing_token": 7.0, "newest_token": 0.0})
	s.post("/v1/locks/a/acquire", `{"holder": "h"}`).want(t, 201, map[string]any{"fencing_token": 1.0, "slot": 0.0, "grace_ms": 0.0})
	s.send("PUT", "/v1/fenced/k", `{"lock": "a", "fencing_token": 1, "value": 1, "if_version": 3}`).
		want(t, 409, map[string]any{"code": "version_mismatch", "version": 0.0})
	s.get("/v1/fenced/k").want(t, 404, map[string]any{"code": "not_found"})
}

func TestInternalErrorsAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	secret := errors.New("password=hunter2")
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"an error of no kind":           {secret, 500, "internal"},
		"an internal error of the kind": {&lock.Error{Code: lock.ErrInternal, Detail: "password=hunter2", Cause: secret}, 500, "internal"},
		"a code that there is not":      {&lock.Error{Code: "weird", Detail: "x", Cause: secret}, 500, "internal"},
		"a cause beside a code":         {&lock.Error{Code: lock.ErrUnavailable, Cause: secret}, 503, "unavailable"},
		"a wrapped code":                {fmt.Errorf("password=hunter2: %w", lock.ErrUnavailable), 503, "unavailable"},
		"a canceled context":            {fmt.Errorf("password=hunter2: %w", context.DeadlineExceeded), 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := refusing(t, &c.err)
			got := s.post(acquirePath, `{"holder": "a"}`)
			got.want(t, c.status, map[string]any{"code": c.code})
			if strings.Contains(got.text, "hunter2") {
				t.Errorf("the answer has the cause: %s", got.text)
			}
			if log := s.log.String(); !strings.Contains(log, "hunter2") || !strings.Contains(log, got.Header.Get("X-Request-Id")) {
				t.Errorf("the log does not have the cause: %s", log)
			}
		})
	}
}
