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

// What may become of a batch as a whole, and the code that each of its calls has then.
var batchFailures = map[string]struct {
	answer func(*heldRequest)
	want   lock.Code
}{
	"no key":                {refuse(401, `"code":"key_missing"`), lock.ErrKeyMissing},
	"a key without a right": {refuse(403, `"code":"role_missing"`), lock.ErrRoleMissing},
	"too many calls":        {refuse(429, `"code":"rate_limited"`), lock.ErrRateLimited},
	"not now":               {refuse(503, `"code":"unavailable"`), lock.ErrUnavailable},
	"a fault":               {refuse(500, `"code":"internal"`), lock.ErrInternal},
	"nobody knows":          {refuse(503, `"code":"unknown_outcome"`), lock.ErrUnknownOutcome},
	"a proxy's 502 page":    {func(a *heldRequest) { a.answer(502, "text/html", page) }, lock.ErrUnknownOutcome},
	"a proxy's 401 page":    {func(a *heldRequest) { a.answer(401, "text/html", page) }, lock.ErrUnavailable},
	"a redirect":            {func(a *heldRequest) { a.answer(307, "text/html", page) }, lock.ErrUnknownOutcome},
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
				d := newHarness(t, client.Options{})
				busy := d.saturate()
				failed := []<-chan *lock.Error{d.fail(d.acquire("a")), d.fail(d.renew("b")), d.fail(d.release("c"))}
				busy[0].grant()
				c.answer(d.request("[ac:a re:b re:c]"))
				seen := map[*lock.Error]bool{}
				for _, f := range failed {
					err := <-f
					if expect(t, "a call", err, c.want); seen[err] {
						t.Error("two callers have one error between them")
					}
					seen[err] = true
				}
				grantAll(busy[1:])
				d.call(d.acquire("again"))
				d.request("ac:again").grant()
				d.all.Wait()
			})
		})
	}
}

func TestEachCallOfABatchGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		held := d.fail(d.acquire("a"))
		d.call(d.release("b"))
		lost := d.fail(d.renew("c"))
		odd := d.fail(d.release("d"))
		busy[0].grant()
		d.requests(1)[0].answer(200, "application/json", `{"later":[{}],"results":[
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
		d.all.Wait()
	})
}

func TestACallCanceledWhileGatheringIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		ctx, cancel := context.WithCancelCause(t.Context())
		d.call(d.acquire("a"))
		failed := d.fail(func() error { return acquireIn(ctx, d.Client) })
		d.call(d.acquire("b"))
		cancel(errEnough)
		err := <-failed
		if expect(t, "Acquire", err, lock.ErrUnavailable); !errors.Is(err, errEnough) {
			t.Errorf("the error %v does not hold the context's cause", err)
		}
		busy[0].grant()
		d.request("[ac:a ac:b]").grant()
		grantAll(busy[1:])
		d.all.Wait()
	})
}

func TestACallCanceledBeforeTheConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connected := make(chan struct{})
		d := newHarness(t, client.Options{})
		d.connect = func() { <-connected }
		ctx, cancel := context.WithCancel(t.Context())
		for range client.MaxInFlight {
			d.call(d.release("busy"))
		}
		d.call(d.acquire("a"))
		failed := d.fail(func() error { return acquireIn(ctx, d.Client) })
		d.call(d.acquire("b"))
		connected <- struct{}{}
		busy := d.requests(1)
		busy[0].grant()
		synctest.Wait() // all are in the request that waits for a connection
		cancel()
		expect(t, "Acquire", <-failed, lock.ErrUnavailable)
		close(connected)
		requests := d.requests(client.MaxInFlight)
		for _, a := range requests {
			if a.isBatch() && (a.String() != "[ac:a ac:b]" || a.length != int64(a.size)) {
				t.Errorf("asked for %v in %d bytes, of which %d were sent", a, a.length, a.size)
			}
			a.grant()
		}
		d.all.Wait()
	})
}

func TestACallCanceledAfterSendingHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		ctx, cancel := context.WithCancelCause(t.Context())
		d.call(d.acquire("a"))
		failed := d.fail(func() error { return acquireIn(ctx, d.Client) })
		busy[0].grant()
		shared := d.request("[ac:a ac:jobs:nightly]")
		cancel(errEnough)
		err := <-failed
		if expect(t, "Acquire", err, lock.ErrUnknownOutcome); !errors.Is(err, errEnough) {
			t.Errorf("the error %v does not hold the context's cause", err)
		}
		shared.grant()
		grantAll(busy[1:])
		d.all.Wait()
	})
}

func TestABatchWhoseCallsAreAllCanceledIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		ctx, cancel := context.WithCancel(t.Context())
		failed := []<-chan *lock.Error{
			d.fail(func() error { return acquireIn(ctx, d.Client) }), d.fail(func() error { return acquireIn(ctx, d.Client) }),
		}
		busy[0].grant()
		shared := d.requests(1)[0]
		cancel()
		<-shared.gone
		for _, f := range failed {
			expect(t, "Acquire", <-f, lock.ErrUnknownOutcome)
		}
		d.call(d.acquire("a"))
		d.request("ac:a").grant() // there is a turn again
		grantAll(busy[1:])
		d.all.Wait()
	})
}

// Answers of those who take no batch, and whether it is any use to send another.
var batchRefusals = map[string]struct {
	answer func(*heldRequest)
	again  bool
}{
	"an older replica":           {refuse(404, `"code":"no_route"`), false},
	"one that has other methods": {refuse(405, `"code":"method_not_allowed"`), false},
	"a proxy's 404":              {func(a *heldRequest) { a.answer(404, "text/html", page) }, false},
	"a proxy with small bodies":  {func(a *heldRequest) { a.answer(413, "text/html", page) }, false},
	"a page":                     {func(a *heldRequest) { a.answer(200, "text/html", page) }, false},
	"another's JSON":             {func(a *heldRequest) { a.answer(200, "application/json", `{}`) }, false},
	"too few results":            {func(a *heldRequest) { a.answer(200, "application/json", `{"results":[{"status":204}]}`) }, false},
	"too many results": {func(a *heldRequest) {
		a.answer(200, "application/json", `{"results":[`+strings.Repeat(`{"status":204},`, 99)+`{"status":204}]}`)
	}, false},
	"one that cannot read an item": {refuse(400, `"code":"invalid_request"`), true},
}

func TestCallsAreSentAloneToAServiceWithoutBatches(t *testing.T) {
	t.Parallel()
	for name, c := range batchRefusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newHarness(t, client.Options{})
				busy := d.saturate()
				d.call(d.acquire("a"))
				d.call(d.renew("b"))
				d.call(d.release("c"))
				busy[0].grant()
				c.answer(d.request("[ac:a re:b re:c]"))
				alone := d.requests(3)
				if !c.again {
					for range 5 {
						d.call(d.acquire("d"))
					}
					alone = append(alone, d.requests(5)...)
					d.sleepPast(client.BatchUnsupportedFor)
				}
				for _, a := range append(alone, busy[1:]...) {
					if a.isBatch() {
						t.Errorf("a batch was sent: %v", a)
					}
					a.grant()
				}
				d.all.Wait()
				busy = d.saturate()
				d.call(d.acquire("a"))
				d.call(d.acquire("b"))
				busy[0].grant()
				grantAll(append(busy[1:], d.request("[ac:a ac:b]")))
				d.all.Wait()
			})
		})
	}
}
