package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

func refuse(status int, members string) func(*heldRequest) {
	return func(a *heldRequest) { a.answer(status, "application/problem+json", problem(members)) }
}

// Failures of a batch as a whole, and the code that each of its calls then returns.
var batchFailures = map[string]struct {
	answer func(*heldRequest)
	want   lock.Code
}{
	"no key":                 {refuse(401, `"code":"key_missing"`), lock.ErrKeyMissing},
	"a key without the role": {refuse(403, `"code":"role_missing"`), lock.ErrRoleMissing},
	"too many calls":         {refuse(429, `"code":"rate_limited"`), lock.ErrRateLimited},
	"unavailable":            {refuse(503, `"code":"unavailable"`), lock.ErrUnavailable},
	"an internal error":      {refuse(500, `"code":"internal"`), lock.ErrInternal},
	"an unknown outcome":     {refuse(503, `"code":"unknown_outcome"`), lock.ErrUnknownOutcome},
	"a proxy's 502 page":     {func(a *heldRequest) { a.answer(502, "text/html", page) }, lock.ErrUnknownOutcome},
	"a proxy's 401 page":     {func(a *heldRequest) { a.answer(401, "text/html", page) }, lock.ErrUnavailable},
	"a redirect":             {func(a *heldRequest) { a.answer(307, "text/html", page) }, lock.ErrUnknownOutcome},
	"a connection cut": {func(a *heldRequest) {
		a.res <- func(*http.Request) (*http.Response, error) { return nil, errors.New("cut") }
	}, lock.ErrUnknownOutcome},
	"no connection": {func(a *heldRequest) {
		a.res <- func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GetConn("paddock.test:80")
			return nil, errors.New("refused")
		}
	}, lock.ErrUnavailable},
}

func TestAFailedBatchFailsEachCall(t *testing.T) {
	t.Parallel()
	for name, c := range batchFailures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, client.Options{})
				busy := h.saturate()
				failed := []<-chan *lock.Error{h.fail(h.acquire("a")), h.fail(h.renew("b")), h.fail(h.release("c"))}
				busy[0].grant()
				c.answer(h.request("[ac:a re:b re:c]"))
				seen := map[*lock.Error]bool{}
				for _, f := range failed {
					err := <-f
					if expect(t, "a call", err, c.want); seen[err] {
						t.Error("two callers share one error value")
					}
					seen[err] = true
				}
				grantAll(busy[1:])
				h.call(h.acquire("again"))
				h.request("ac:again").grant()
				h.all.Wait()
			})
		})
	}
}

func TestEachCallOfABatchGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		held := h.fail(h.acquire("a"))
		h.call(h.release("b"))
		lost := h.fail(h.renew("c"))
		odd := h.fail(h.release("d"))
		busy[0].grant()
		h.requests(1)[0].answer(200, "application/json", `{"later":[{}],"results":[
			{"status":409,"problem":`+problem(`"code":"lock_held","holder":"w","retry_after_ms":5`)+`},
			{"status":204},
			{"problem":`+problem(`"code":"lease_lost","ended":"revoked"`)+`,"status":409},
			{"status":599,"problem":`+problem(`"code":"of_a_later_version"`)+`}]}`)
		if e := <-held; e.Code != lock.ErrHeld || e.Holder != "w" || e.RetryAfter == 0 {
			t.Errorf("the acquire ended with %#v", e)
		}
		if e := <-lost; e.Code != lock.ErrLeaseLost || e.Ended != lock.Revoked {
			t.Errorf("the renewal ended with %#v", e)
		}
		if e := <-odd; e.Code != lock.ErrUnknownOutcome {
			t.Errorf("the release ended with %#v", e)
		}
		grantAll(busy[1:])
		h.all.Wait()
	})
}

func TestACallCanceledWhileGatheringIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		ctx, cancel := context.WithCancelCause(t.Context())
		h.call(h.acquire("a"))
		failed := h.fail(func() error { return acquireIn(ctx, h.Client) })
		h.call(h.acquire("b"))
		cancel(errCanceled)
		err := <-failed
		if expect(t, "Acquire", err, lock.ErrUnavailable); !errors.Is(err, errCanceled) {
			t.Errorf("the error %v does not hold the context's cause", err)
		}
		busy[0].grant()
		h.request("[ac:a ac:b]").grant()
		grantAll(busy[1:])
		h.all.Wait()
	})
}

func TestACallCanceledBeforeTheConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connected := make(chan struct{})
		h := newHarness(t, client.Options{})
		h.connect = func() { <-connected }
		ctx, cancel := context.WithCancel(t.Context())
		for range client.MaxInFlight {
			h.call(h.release("busy"))
		}
		h.call(h.acquire("a"))
		failed := h.fail(func() error { return acquireIn(ctx, h.Client) })
		h.call(h.acquire("b"))
		connected <- struct{}{}
		busy := h.requests(1)
		busy[0].grant()
		synctest.Wait() // all calls are in the request that waits for a connection
		cancel()
		expect(t, "Acquire", <-failed, lock.ErrUnavailable)
		close(connected)
		requests := h.requests(client.MaxInFlight)
		for _, a := range requests {
			if a.isBatch() && (a.String() != "[ac:a ac:b]" || a.length != int64(a.size)) {
				t.Errorf("asked for %v with Content-Length %d, but %d bytes were sent", a, a.length, a.size)
			}
			a.grant()
		}
		h.all.Wait()
	})
}

func TestACallCanceledAfterSendingHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		ctx, cancel := context.WithCancelCause(t.Context())
		h.call(h.acquire("a"))
		failed := h.fail(func() error { return acquireIn(ctx, h.Client) })
		busy[0].grant()
		shared := h.request("[ac:a ac:jobs:nightly]")
		cancel(errCanceled)
		err := <-failed
		if expect(t, "Acquire", err, lock.ErrUnknownOutcome); !errors.Is(err, errCanceled) {
			t.Errorf("the error %v does not hold the context's cause", err)
		}
		shared.grant()
		grantAll(busy[1:])
		h.all.Wait()
	})
}

func TestABatchIsAbortedWhenAllItsCallsAreCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		ctx, cancel := context.WithCancel(t.Context())
		failed := []<-chan *lock.Error{
			h.fail(func() error { return acquireIn(ctx, h.Client) }), h.fail(func() error { return acquireIn(ctx, h.Client) }),
		}
		busy[0].grant()
		shared := h.requests(1)[0]
		cancel()
		<-shared.gone
		for _, f := range failed {
			expect(t, "Acquire", <-f, lock.ErrUnknownOutcome)
		}
		h.call(h.acquire("a"))
		h.request("ac:a").grant() // a slot is free again
		grantAll(busy[1:])
		h.all.Wait()
	})
}

// Refusals of a batch, and whether further batches are sent after it.
var batchRefusals = map[string]struct {
	answer func(*heldRequest)
	again  bool // batches are still sent
}{
	"an older replica":            {refuse(404, `"code":"no_route"`), false},
	"a server with other methods": {refuse(405, `"code":"method_not_allowed"`), false},
	"a proxy's 404":               {func(a *heldRequest) { a.answer(404, "text/html", page) }, false},
	"a proxy with small bodies":   {func(a *heldRequest) { a.answer(413, "text/html", page) }, false},
	"a page":                      {func(a *heldRequest) { a.answer(200, "text/html", page) }, false},
	"JSON of another server":      {func(a *heldRequest) { a.answer(200, "application/json", `{}`) }, false},
	"too few results":             {func(a *heldRequest) { a.answer(200, "application/json", `{"results":[{"status":204}]}`) }, false},
	"too many results": {func(a *heldRequest) {
		a.answer(200, "application/json", `{"results":[`+strings.Repeat(`{"status":204},`, 99)+`{"status":204}]}`)
	}, false},
	"an item that cannot be parsed": {refuse(400, `"code":"invalid_request"`), true},
}

func TestCallsAreSentAloneToAServiceWithoutBatches(t *testing.T) {
	t.Parallel()
	for name, c := range batchRefusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, client.Options{})
				busy := h.saturate()
				h.call(h.acquire("a"))
				h.call(h.renew("b"))
				h.call(h.release("c"))
				busy[0].grant()
				c.answer(h.request("[ac:a re:b re:c]"))
				alone := h.requests(3)
				if !c.again {
					for range 5 {
						h.call(h.acquire("d"))
					}
					alone = append(alone, h.requests(5)...)
					h.sleepPast(client.BatchUnsupportedFor)
				}
				for _, a := range append(alone, busy[1:]...) {
					if a.isBatch() {
						t.Errorf("a batch was sent: %v", a)
					}
					a.grant()
				}
				h.all.Wait()
				busy = h.saturate()
				h.call(h.acquire("a"))
				h.call(h.acquire("b"))
				busy[0].grant()
				grantAll(append(busy[1:], h.request("[ac:a ac:b]")))
				h.all.Wait()
			})
		})
	}
}
