package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// Acquire takes the lock, or is refused with lock.ErrHeld once its Wait is over. A
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
	if err := carries(a); err != nil {
		return lock.Grant{}, err
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	if a.Wait != 0 || a.KeepPlace {
		return c.acquire(ctx, a)
	}
	return c.coalesce(ctx, a)
}

// acquire sends the call in a request of its own.
func (c *Client) acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	got, err := call[openapi.Lease]{
		changes: true, body: acquireTo(a), limit: maxAnswer,
		success: []int{http.StatusCreated, http.StatusOK}, answers: isLease(a.Name, a.LeaseID),
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.AcquireLockWithBody(ctx, a.Name, contentJSON, body)
		},
	}.do(ctx)
	if err != nil {
		kept := a.KeepPlace && errors.Is(ctx.Err(), context.DeadlineExceeded) // for the next call
		if a.Wait > 0 && ctx.Err() != nil && !kept && errors.Is(err, lock.ErrUnknownOutcome) {
			err = c.giveUp(ctx, a, err)
		}
		return lock.Grant{}, err
	}
	g := grantFrom(got)
	g.Replayed = got.status == http.StatusOK
	return g, nil
}

// carries refuses what JSON and a URL would carry as something else. Every other
// bound is the service's to check.
func carries(a lock.Acquire) error {
	return cmp.Or(lock.CheckName(a.Name), carriesMetadata(a.Metadata), carriesText("holder", a.Holder))
}

func carriesMetadata(m json.RawMessage) error {
	if m != nil && !isJSON(m) {
		return lock.Invalid("metadata", "must be a JSON object, in UTF-8")
	}
	return nil
}

// isJSON returns whether JSON can carry m as it is.
func isJSON(m json.RawMessage) bool { return json.Valid(m) && utf8.Valid(m) }

// carriesText refuses text that JSON would carry with its bad bytes replaced.
func carriesText(field, text string) error {
	if !utf8.ValidString(text) {
		return lock.Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// Renew moves the end of a lease, or is refused with lock.ErrLeaseLost. The TTL
// travels as that of Acquire does.
func (c *Client) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	if err := cmp.Or(lock.CheckName(r.Name), carriesMetadata(r.Metadata)); err != nil {
		return lock.Grant{}, err
	}
	return c.coalesce(ctx, r)
}

// renew sends the call in a request of its own.
func (c *Client) renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	got, err := call[openapi.Lease]{
		changes: true, body: openapi.RenewRequest{LeaseID: uuid.UUID(r.LeaseID), TTLMs: toMs(r.TTL), Metadata: r.Metadata},
		limit: maxAnswer, success: []int{http.StatusOK}, answers: isLease(r.Name, r.LeaseID),
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.RenewLeaseWithBody(ctx, r.Name, contentJSON, body)
		},
	}.do(ctx)
	if err != nil {
		return lock.Grant{}, err
	}
	return grantFrom(got), nil
}

// Release ends a lease or gives a place in the queue up, or is refused with
// lock.ErrLeaseLost.
func (c *Client) Release(ctx context.Context, r lock.Release) error {
	if err := lock.CheckName(r.Name); err != nil {
		return err
	}
	_, err := c.coalesce(ctx, r)
	return err
}

// release sends the call in a request of its own.
func (c *Client) release(ctx context.Context, r lock.Release) error {
	_, err := call[struct{}]{
		changes: true, body: openapi.ReleaseRequest{LeaseID: uuid.UUID(r.LeaseID)},
		limit: maxAnswer, success: []int{http.StatusNoContent},
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.ReleaseLeaseWithBody(ctx, r.Name, contentJSON, body)
		},
	}.do(ctx)
	return err
}

// Revoke takes leases away and returns the lock as it is then, or is refused
// with lock.ErrTokenMismatch.
func (c *Client) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	if err := lock.CheckName(r.Name); err != nil {
		return lock.Lock{}, err
	}
	if err := carriesText("reason", r.Reason); err != nil {
		return lock.Lock{}, err
	}
	got, err := call[openapi.Lock]{
		changes: true, body: openapi.RevokeRequest{
			FencingToken: int64(r.Token), Slot: r.Slot, AcquiredAt: ifGiven(r.AcquiredAt), Reason: r.Reason, SkipGrace: ifGiven(r.SkipGrace),
		},
		limit: maxMany, success: []int{http.StatusOK}, answers: isLock(r.Name),
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.RevokeLockWithBody(ctx, r.Name, contentJSON, body)
		},
	}.do(ctx)
	if err != nil {
		return lock.Lock{}, err
	}
	return lockFrom(got.value), nil
}
