package paddock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func TestValidateBatchItem(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]resolved{
		"an acquire":                      {paddock.ValidateBatchItem(lock.Acquire{}), ""},
		"a renewal":                       {paddock.ValidateBatchItem(lock.Renew{}), ""},
		"a release":                       {paddock.ValidateBatchItem(lock.Release{}), ""},
		"an acquire that waits":           {paddock.ValidateBatchItem(lock.Acquire{Wait: time.Millisecond}), "wait_ms"},
		"an acquire with a negative wait": {paddock.ValidateBatchItem(lock.Acquire{Wait: -1}), "wait_ms"},
		"an acquire that keeps its place": {paddock.ValidateBatchItem(lock.Acquire{KeepPlace: true}), "keep_place"},
		"the maximum number of items":     {paddock.CheckBatch(paddock.MaxBatch), ""},
		"one item more":                   {paddock.CheckBatch(paddock.MaxBatch + 1), "items"},
	} {
		t.Run(name, r.check)
	}
	for name, item := range map[string]lock.Command{
		"nothing": nil, "a revocation": lock.Revoke{}, "a sweep": lock.Sweep{}, "a claim": lock.Claim{}, "a leaving": lock.Leave{}, "a pointer": &lock.Renew{},
	} {
		if err := paddock.ValidateBatchItem(item); err == nil {
			t.Errorf("%s is accepted as an item", name)
		}
	}
}
