package lock

import "context"

// MaxBatch is how many items a batch may have.
const MaxBatch = 1000

// A Result is what came of an item of a batch: what the call alone would have
// returned. The Grant is that of an Acquire or a Renew, zero beside an Err.
type Result struct {
	Grant Grant
	Err   error
}

// ValidateBatchItem returns an ErrInvalid error unless the command may be an item of a
// batch: an Acquire that only tries, a Renew or a Release. Their own bounds are
// for Resolve to check.
func ValidateBatchItem(item Command) error {
	switch c := item.(type) {
	case Acquire:
		return c.checkNoWait()
	case Renew, Release:
		return nil
	}
	return &Error{Code: ErrInvalid, Detail: "A batch has acquires, renewals and releases only. Send anything else in a call of its own."}
}

func (a Acquire) checkNoWait() error {
	switch {
	case a.Wait != 0:
		return Invalid("wait_ms", "does not go in a batch, which waits for nobody; wait in a call of its own")
	case a.KeepPlace:
		return Invalid("keep_place", "does not go in a batch, which waits for nobody; wait in a call of its own")
	}
	return nil
}

// CheckBatch returns an ErrInvalid error if a batch may not have that many items.
func CheckBatch(items int) error {
	if items > MaxBatch {
		return Invalid("items", "are more than the %d that a batch may have; send them in several", MaxBatch)
	}
	return nil
}

// FailAll returns the results of a batch of that many items none of which was
// begun, for the same reason.
func FailAll(items int, err error) []Result {
	results := make([]Result, items)
	for i := range results {
		results[i].Err = err
	}
	return results
}

// BatchSequentially does the items of a batch as calls to s, one after another: what a Service
// does that has no better way.
func BatchSequentially(ctx context.Context, s Service, items []Command) []Result {
	if err := CheckBatch(len(items)); err != nil {
		return FailAll(len(items), err)
	}
	results := make([]Result, len(items))
	for i, item := range items {
		results[i] = runItem(ctx, s, item)
	}
	return results
}

func runItem(ctx context.Context, s Service, item Command) (r Result) {
	if r.Err = ValidateBatchItem(item); r.Err != nil {
		return r
	}
	switch c := item.(type) {
	case Acquire:
		r.Grant, r.Err = s.Acquire(ctx, c)
	case Renew:
		r.Grant, r.Err = s.Renew(ctx, c)
	case Release:
		r.Err = s.Release(ctx, c)
	}
	return r
}
