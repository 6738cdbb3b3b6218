package client_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const page = "<html><body>" + leaseText + "</body></html>"

// Answers that are not from Paddock, and the codes of a change and of a read that get them.
var foreignAnswers = map[string]struct {
	status            int
	contentType, body string
	change, read      lock.Code
}{
	"a proxy's 502 page":             {502, "text/html", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a proxy's 503 without a type":   {503, "", "", lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a proxy's 504 page":             {504, "text/html; charset=utf-8", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"another server's 500":           {500, "text/plain", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"another server's 404":           {404, "text/plain", page, lock.ErrUnavailable, lock.ErrUnavailable},
	"a proxy's 401":                  {401, "text/html", page, lock.ErrUnavailable, lock.ErrUnavailable},
	"a proxy's 429":                  {429, "application/json", `{"code":"lock_held"}`, lock.ErrUnavailable, lock.ErrUnavailable},
	"a problem without a code":       {502, "application/problem+json", `{"title":"x"}`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a problem cut short":            {503, "application/problem+json", `{"code":"lock_h`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a problem that is a list":       {409, "application/problem+json", `[]`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a login page with 200":          {200, "text/html", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"another server's JSON":          {200, "application/json", `{"status":"ok"}`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"JSON that is null":              {200, "application/json", `null`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"JSON cut short":                 {200, "application/json", `{"name":"jobs:nightly","state":"fr`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"an empty 200":                   {200, "application/json", ``, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a 204 where a body is required": {204, "application/json", ``, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"an unknown success status":      {202, "application/json", leaseJSON, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a redirect":                     {307, "text/html", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a proxy's 408 page":             {408, "text/html", page, lock.ErrUnknownOutcome, lock.ErrUnavailable},
	"a gateway's own problem":        {504, "application/problem+json", `{"code":"upstream_timeout"}`, lock.ErrUnknownOutcome, lock.ErrUnavailable},
}

func TestAnswersThatAreNotFromPaddock(t *testing.T) {
	t.Parallel()
	for name, c := range foreignAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := saying(c.status, c.contentType, c.body)
			for call, err := range changes(t, over(t, w)) {
				if slices.Contains([]string{"Release", "Release a set", "CloseSession"}, call) && c.status == http.StatusNoContent {
					continue
				}
				expect(t, call, err, c.change)
			}
			for call, err := range reads(t, over(t, w)) {
				expect(t, call, err, c.read)
			}
		})
	}
}

// TestAnswersWithoutTheHeaderOfPaddockAreNotBelieved uses answers that Paddock could have sent, but for their header.
func TestAnswersWithoutTheHeaderOfPaddockAreNotBelieved(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]roundTripFunc{
		"an empty 200":       saying(http.StatusOK, "application/json", ""),
		"an empty 204":       saying(http.StatusNoContent, "", ""),
		"a 304":              saying(http.StatusNotModified, "", ""),
		"a lease":            saying(http.StatusCreated, "application/json", leaseJSON),
		"a lock":             saying(http.StatusOK, "application/json", strings.ReplaceAll(freeJSON, "nightly", "daily")),
		"a fenced value":     saying(http.StatusOK, "application/json", fencedJSON),
		"a page of anything": saying(http.StatusOK, "application/json", `{"locks":[],"events":[],"sessions":[],"trees":[]}`),
		"a loss":             saying(http.StatusConflict, "application/problem+json", `{"code":"lease_lost"}`),
		"a refusal":          saying(http.StatusConflict, "application/problem+json", `{"code":"lock_held"}`),
		"a stream":           saying(http.StatusOK, "text/event-stream", "id: 1\n\n"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := over(t, func(r *http.Request) (*http.Response, error) {
				res, err := answer(r)
				res.Header.Del("Paddock-Api")
				return res, err
			})
			for call, err := range changes(t, c) {
				expect(t, call, err, lock.ErrUnknownOutcome)
			}
			expect(t, "RemoveTree", c.RemoveTree(t.Context(), "repo"), lock.ErrUnknownOutcome)
			for call, err := range reads(t, c) {
				expect(t, call, err, lock.ErrUnavailable)
			}
			_, err := c.Stream(t.Context(), paddock.EventQuery{})
			expect(t, "Stream", err, lock.ErrUnavailable)
		})
	}
}

func TestALeaseThatWasNotAskedForIsRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"another lease_id": strings.Replace(leaseJSON, leaseText[:8], "00000000", 1),
		"another lock":     strings.Replace(leaseJSON, "jobs:nightly", "jobs:daily", 1),
		"no token":         strings.Replace(leaseJSON, `"fencing_token":41,`, "", 1),
	} {
		_, err := acquire(over(t, saying(http.StatusOK, "application/json", body)), t)
		expect(t, name, err, lock.ErrUnknownOutcome)
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	endless := strings.Repeat(" ", 17<<20)
	c := over(t, saying(http.StatusOK, "application/json", endless))
	_, err := acquire(c, t)
	expect(t, "Acquire", err, lock.ErrUnknownOutcome)
	_, err = c.Locks(t.Context(), paddock.LockQuery{})
	expect(t, "Locks", err, lock.ErrUnavailable)
}

func expect(t *testing.T, call string, err error, code lock.Code) {
	t.Helper()
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: the error is %v, want the code %s", call, err, code)
		return
	}
	if e.Detail == "" {
		t.Errorf("%s: the error has no Detail", call)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), leaseText) {
			t.Errorf("%s: the error contains a lease_id: %v", call, err)
		}
	}
	if e.Cause != nil && strings.Contains(e.Cause.Error(), leaseText) {
		t.Errorf("%s: the cause contains a lease_id: %v", call, e.Cause)
	}
}

func changes(t *testing.T, s paddock.Service) map[string]error {
	t.Helper()
	_, acquired := s.Acquire(t.Context(), lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1"})
	_, renewed := s.Renew(t.Context(), lock.Renew{Locks: []string{"jobs:nightly"}, LeaseID: leaseID})
	released := s.Release(t.Context(), lock.Release{Locks: []string{"jobs:nightly"}, LeaseID: leaseID})
	_, revoked := s.Revoke(t.Context(), lock.Revoke{Name: "jobs:nightly", Token: 41, Reason: "why"})
	_, wrote := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "jobs:nightly", Token: 41, Value: []byte("1")})
	_, opened := s.OpenSession(t.Context(), lock.OpenSession{ID: sessionID, Holder: "worker-1"})
	_, extended := s.RenewSession(t.Context(), lock.RenewSession{ID: sessionID})
	closed := s.CloseSession(t.Context(), lock.CloseSession{ID: sessionID})
	_, taken := s.RevokeSession(t.Context(), lock.RevokeSession{Ref: sessionID.Ref(), Reason: "why"})
	_, together := s.Acquire(t.Context(), transfer())
	_, kept := s.Renew(t.Context(), lock.Renew{Locks: setNames, LeaseID: leaseID})
	ended := s.Release(t.Context(), lock.Release{Locks: setNames, LeaseID: leaseID})
	return map[string]error{
		"Acquire a set": together, "Renew a set": kept, "Release a set": ended,
		"Acquire": acquired, "Renew": renewed, "Release": released, "Revoke": revoked, "WriteFenced": wrote,
		"OpenSession": opened, "RenewSession": extended, "CloseSession": closed, "RevokeSession": taken,
	}
}

func reads(t *testing.T, s paddock.Service) map[string]error {
	t.Helper()
	_, one := s.Lock(t.Context(), "jobs:daily")
	_, list := s.Locks(t.Context(), paddock.LockQuery{})
	_, watched := s.Watch(t.Context(), paddock.Watch{Name: "jobs:daily", Seen: "2.41.free.0.0", Wait: time.Second})
	_, queue := s.Queue(t.Context(), "jobs:daily")
	_, events := s.Events(t.Context(), paddock.EventQuery{})
	_, verified := s.VerifyToken(t.Context(), lock.Verify{Name: "jobs:nightly", Token: 41})
	_, got := s.ReadFenced(t.Context(), "accounts:42")
	_, session := s.Session(t.Context(), sessionID.Ref())
	_, sessions := s.Sessions(t.Context(), paddock.SessionQuery{})
	return map[string]error{
		"Session": session, "Sessions": sessions,
		"Lock": one, "Watch": watched, "Queue": queue, "Locks": list, "Events": events, "VerifyToken": verified, "ReadFenced": got,
	}
}
