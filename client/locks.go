package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	locksPath = "/v1/locks/"
	setsPath  = "/v1"
	// giveUpTimeout is how long an Acquire whose context has ended may take to give its place up.
	giveUpTimeout = 3 * time.Second
)

// Acquire takes the locks, all or none, or is refused with lock.ErrHeld once its Wait is over. A
// zero LeaseID is replaced by a random one before anything is sent; choose it
// yourself to be able to send the call again after lock.ErrUnknownOutcome. The
// Attachment and the Replica do not travel.
//
// Durations travel in whole milliseconds, rounded down. One of less than a
// millisecond is sent as a millisecond, not as if it were absent.
//
// The Until of a grant that was waited for is counted from the sending, too, so
// the wait is taken off it: it may be over. Renew at once and count from that.
//
// When the context of a call that waits ends, the place in the queue, or the lease
// that came meanwhile, is given up before Acquire returns, which takes up to three
// seconds where the service does not answer. Choose a new LeaseID to wait again.
func (c *Client) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if err := checkAcquire(a); err != nil {
		return lock.Grant{}, err
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	if a.Wait != 0 || a.KeepPlace || len(a.Locks) > 1 {
		return c.acquire(ctx, a)
	}
	return c.coalesce(ctx, a)
}

// acquire sends the call in a request of its own, or in one for each part of a long wait: those keep the place.
func (c *Client) acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	c.waits.split(a.Wait, func(part time.Duration, more bool) bool {
		one := a
		one.Wait, one.KeepPlace = part, a.KeepPlace || more
		var got answer[lock.Grant]
		got, err = call[lock.Grant]{
			request: request{method: http.MethodPost, path: pathOf(a.Names()) + "/acquire", body: one},
			changes: true, wait: part, success: []int{http.StatusCreated, http.StatusOK}, parse: leaseOf(a),
		}.do(ctx, c)
		if err != nil {
			return got.interrupted || more && keepsPlace(err)
		}
		g = got.value
		g.Replayed = got.status == http.StatusOK
		return false
	})
	kept := a.KeepPlace && errors.Is(ctx.Err(), context.DeadlineExceeded) // for the next call
	if err != nil && a.Wait > 0 && ctx.Err() != nil && !kept && errors.Is(err, lock.ErrUnknownOutcome) {
		err = c.giveUp(ctx, a, err)
	}
	return g, err
}

// keepsPlace reports whether the wait was over without a grant, and the service keeps the place for the next call.
func keepsPlace(err error) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.KeptFor > 0
}

// leaseOf returns a parser of the response to an acquire or a renewal.
func leaseOf(c lock.Command) parser[lock.Grant] {
	return func(text []byte, sent time.Time) (lock.Grant, error) { return wire.ParseLease(text, c, sent) }
}

// pathOf returns the path of the lock with the only name, or that of calls about several locks.
func pathOf(names []string) string {
	if len(names) > 1 {
		return setsPath
	}
	return locksPath + names[0]
}

// checkAcquire refuses what a URL or JSON would change. The service checks all other bounds.
func checkAcquire(a lock.Acquire) error {
	return cmp.Or(checkNames("locks", a.Names()), checkMetadata(a.Metadata), checkText("holder", a.Holder))
}

// checkNames refuses the only name if it is invalid, and a list without names, which field has.
func checkNames(field string, names []string) error {
	switch len(names) {
	case 0:
		return lock.Invalid(field, "has 0 items; give 1 to %d", lock.MaxSetSize)
	case 1:
		return lock.CheckName(names[0])
	}
	return nil
}

func checkMetadata(m json.RawMessage) error {
	if m != nil && !isJSON(m) {
		return lock.Invalid("metadata", "must be a JSON object, in UTF-8")
	}
	return nil
}

// isJSON reports whether m can be part of a JSON text unchanged.
func isJSON(m json.RawMessage) bool { return json.Valid(m) && utf8.Valid(m) }

// checkText refuses text whose invalid bytes JSON would replace.
func checkText(field, text string) error {
	if !utf8.ValidString(text) {
		return lock.Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// Renew moves the end of the leases of its locks, or is refused with lock.ErrLeaseLost. The TTL
// travels as that of Acquire does.
func (c *Client) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	if err := cmp.Or(checkNames("names", r.Locks), checkMetadata(r.Metadata)); err != nil {
		return lock.Grant{}, err
	}
	if len(r.Locks) > 1 {
		return c.renew(ctx, r)
	}
	return c.coalesce(ctx, r)
}

// renew sends the call in a request of its own.
func (c *Client) renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return call[lock.Grant]{
		request: request{method: http.MethodPost, path: pathOf(r.Locks) + "/renew", body: r},
		changes: true, parse: leaseOf(r),
	}.get(ctx, c)
}

// Release ends the leases of its locks, or gives their places in the queues up, or is refused with lock.ErrLeaseLost.
func (c *Client) Release(ctx context.Context, r lock.Release) error {
	if err := checkNames("names", r.Locks); err != nil {
		return err
	}
	if len(r.Locks) > 1 {
		return c.release(ctx, r)
	}
	_, err := c.coalesce(ctx, r)
	return err
}

// release sends the call in a request of its own.
func (c *Client) release(ctx context.Context, r lock.Release) error {
	_, err := call[struct{}]{
		request: request{method: http.MethodPost, path: pathOf(r.Locks) + "/release", body: r},
		changes: true, success: []int{http.StatusNoContent},
	}.do(ctx, c)
	return err
}

// Revoke takes leases from their holders and returns the lock, or fails with lock.ErrTokenMismatch.
func (c *Client) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	if err := cmp.Or(lock.CheckName(r.Name), checkText("reason", r.Reason)); err != nil {
		return lock.Lock{}, err
	}
	body := api.RevokeRequest{
		FencingToken: int64(r.Token), Slot: r.Slot, AcquiredAt: wire.UnlessZero(r.AcquiredAt), Reason: r.Reason,
		SkipGrace: wire.UnlessZero(r.SkipGrace),
	}
	return call[lock.Lock]{
		request: request{method: http.MethodPost, path: locksPath + r.Name + "/revoke", body: body},
		changes: true, once: true, limit: maxListResponse, parse: lockNamed(r.Name),
	}.get(ctx, c)
}

// releaseRetries are the delays before a release that found no lease is sent again: on another connection it may have
// arrived before the acquire that it undoes.
var releaseRetries = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond}

// giveBack releases the leases or the places of a, with retries.
func (c *Client) giveBack(ctx context.Context, a lock.Acquire) error {
	r := lock.Release{Locks: a.Names(), LeaseID: a.LeaseID}
	err := c.Release(ctx, r)
	for _, delay := range releaseRetries {
		if !errors.Is(err, lock.ErrLeaseLost) {
			break
		}
		select {
		case <-time.After(delay):
			err = c.Release(ctx, r)
		case <-ctx.Done():
		}
	}
	return err
}

// giveUp releases the lease or the place of an acquire whose response is lost. It returns the error of the acquire.
func (c *Client) giveUp(ctx context.Context, a lock.Acquire, err error) error {
	e := &lock.Error{Code: lock.ErrUnknownOutcome, Cause: errors.Join(context.Cause(ctx), err),
		Detail: "The context ended while the call waited. Its place in the queue, or the lease granted meanwhile, was " +
			"released. To wait again, choose a new lease_id."}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	left := c.giveBack(ctx, a)
	if left != nil && !errors.Is(left, lock.ErrLeaseLost) {
		e.Cause = errors.Join(e.Cause, left)
		e.Detail = "The context ended while the call waited, and the release of its place got no answer. A lease granted " +
			"meanwhile ends with its TTL; release the lease_id to be sure, and choose a new one to wait again."
	}
	return e
}
