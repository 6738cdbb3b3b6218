package paddock

import (
	"cmp"
	"context"

	"github.com/paddock-lock/paddock/lock"
)

// MaxBatch is the maximum number of items of a batch.
const MaxBatch = 1000

// A Result is the outcome of one item of a batch, the same as that of a separate call. Grant is set for an Acquire or
// a Renew that succeeded, and zero otherwise.
type Result struct {
	Grant lock.Grant
	Err   error
}

// ValidateBatchItem returns an ErrInvalid error unless the command may be an item of a batch: an Acquire that does
// not wait, a Renew or a Release, each on one lock. It does not check their fields; Resolve does.
func ValidateBatchItem(item lock.Command) error {
	switch c := item.(type) {
	case lock.Acquire:
		return cmp.Or(checkAlone("locks", len(c.Locks)), checkNoWait(c))
	case lock.Renew:
		return checkAlone("names", len(c.Locks))
	case lock.Release:
		return checkAlone("names", len(c.Locks))
	}
	return &lock.Error{Code: lock.ErrInvalid,
		Detail: "A batch may contain only acquires, renewals and releases. Send other commands separately."}
}

func checkAlone(field string, locks int) error {
	if locks > 1 {
		return lock.Invalid(field, "are not allowed in a batch, whose items are about one lock each; send the call separately")
	}
	return nil
}

func checkNoWait(a lock.Acquire) error {
	switch {
	case a.Wait != 0:
		return lock.Invalid("wait_ms", "is not allowed in a batch; to wait, send the acquire separately")
	case a.KeepPlace:
		return lock.Invalid("keep_place", "is not allowed in a batch; to keep a place, send the acquire separately")
	}
	return nil
}

// CheckBatch returns an ErrInvalid error if items is more than MaxBatch.
func CheckBatch(items int) error {
	if items > MaxBatch {
		return lock.Invalid("items", "exceed the maximum of %d; split them into several batches", MaxBatch)
	}
	return nil
}

// FailAll returns the results of a batch whose items all failed with err.
func FailAll(items int, err error) []Result {
	results := make([]Result, items)
	for i := range results {
		results[i].Err = err
	}
	return results
}

// BatchSequentially runs the items as separate calls to s, one after another. It implements Service.Batch for a
// Service without a faster way.
func BatchSequentially(ctx context.Context, s Service, items []lock.Command) []Result {
	if err := CheckBatch(len(items)); err != nil {
		return FailAll(len(items), err)
	}
	results := make([]Result, len(items))
	for i, item := range items {
		results[i] = runItem(ctx, s, item)
	}
	return results
}

func runItem(ctx context.Context, s Service, item lock.Command) (r Result) {
	if r.Err = ValidateBatchItem(item); r.Err != nil {
		return r
	}
	switch c := item.(type) {
	case lock.Acquire:
		r.Grant, r.Err = s.Acquire(ctx, c)
	case lock.Renew:
		r.Grant, r.Err = s.Renew(ctx, c)
	case lock.Release:
		r.Err = s.Release(ctx, c)
	}
	return r
}
