package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestValidateBatchItem(t *testing.T) {
	t.Parallel()
	for _, b := range []bound{
		{"an acquire", lock.ValidateBatchItem(lock.Acquire{}), ""},
		{"a renewal", lock.ValidateBatchItem(lock.Renew{}), ""},
		{"a release", lock.ValidateBatchItem(lock.Release{}), ""},
		{"an acquire that waits", lock.ValidateBatchItem(lock.Acquire{Wait: time.Millisecond}), "wait_ms"},
		{"an acquire with a negative wait", lock.ValidateBatchItem(lock.Acquire{Wait: -1}), "wait_ms"},
		{"an acquire that keeps its place", lock.ValidateBatchItem(lock.Acquire{KeepPlace: true}), "keep_place"},
		{"the maximum number of items", lock.CheckBatch(lock.MaxBatch), ""},
		{"one item more", lock.CheckBatch(lock.MaxBatch + 1), "items"},
	} {
		t.Run(b.name, b.check)
	}
	for name, item := range map[string]lock.Command{
		"nothing": nil, "a revocation": lock.Revoke{}, "a sweep": lock.Sweep{}, "a claim": lock.Claim{}, "a leaving": lock.Leave{}, "a pointer": &lock.Renew{},
	} {
		if err := lock.ValidateBatchItem(item); err == nil {
			t.Errorf("%s is accepted as an item", name)
		}
	}
}
