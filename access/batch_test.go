package access_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// A recordingService is a paddock.Service that grants every item of a batch and records the items.
type recordingService struct {
	paddock.Service
	items []lock.Command
}

func (b *recordingService) Batch(_ context.Context, items []lock.Command) []paddock.Result {
	b.items = append(b.items, items...)
	results := make([]paddock.Result, len(items))
	for i, item := range items {
		if len(item.Names()) > 0 {
			results[i].Grant.Name = item.Names()[0]
		}
	}
	return results
}

// codes returns the code of each result, empty for a success.
func codes(results []paddock.Result) []lock.Code {
	all := make([]lock.Code, len(results))
	for i, r := range results {
		if e := (*lock.Error)(nil); errors.As(r.Err, &e) {
			all[i] = e.Code
		}
	}
	return all
}

func TestEachItemIsCheckedSeparately(t *testing.T) {
	t.Parallel()
	inner := new(recordingService)
	locks := access.Guard(inner, access.Limits{})
	results := locks.Batch(withKey(t, access.Lock, "billing"), []lock.Command{
		lock.Renew{Locks: []string{"billing:a"}}, lock.Acquire{Locks: lock.One("billing2")}, lock.Release{Locks: []string{"billing"}}, lock.Renew{Locks: []string{"a/b"}},
		lock.Release{Locks: []string{"other"}}, lock.Acquire{Locks: lock.One("billing:b")},
	})
	want := []lock.Code{"", lock.ErrNameNotAllowed, "", lock.ErrInvalid, lock.ErrNameNotAllowed, ""}
	if diff := cmp.Diff(want, codes(results)); diff != "" {
		t.Error(diff)
	}
	for i, name := range []string{"billing:a", "", "billing", "", "", "billing:b"} {
		if results[i].Grant.Name != name {
			t.Errorf("item %d got the result of %q, want that of %q", i, results[i].Grant.Name, name)
		}
	}
	if len(inner.items) != 3 {
		t.Errorf("%d items were passed on: %+v", len(inner.items), inner.items)
	}
}

// TestBatchItemsCountTowardsTheRate has acquires, which share one limit, and renewals and releases, which share
// another. A refused item counts, too.
func TestBatchItemsCountTowardsTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := new(recordingService)
		locks := access.Guard(inner, access.Limits{Rate: 2, Burst: 3})
		ctx := withKey(t, access.Lock, "billing")
		a, r := lock.Acquire{Locks: lock.One("billing")}, lock.Renew{Locks: []string{"billing"}}
		results := locks.Batch(ctx, []lock.Command{a, lock.Acquire{Locks: lock.One("other")}, a, a, r, lock.Release{Locks: []string{"billing"}}, r, r})
		limited := lock.ErrRateLimited
		if diff := cmp.Diff([]lock.Code{"", lock.ErrNameNotAllowed, "", limited, "", "", "", limited}, codes(results)); diff != "" {
			t.Error(diff)
		}
		for _, i := range []int{3, 7} {
			if e := (*lock.Error)(nil); !errors.As(results[i].Err, &e) || e.RetryAfter != time.Second/2 {
				t.Errorf("item %d: retry after %v, want half a second", i, e.RetryAfter)
			}
		}
		if err := errOf(locks.Acquire(ctx, a)); !errors.Is(err, limited) {
			t.Errorf("a call after the batch: %v", err)
		}
		time.Sleep(time.Second / 2)
		if got := codes(locks.Batch(ctx, []lock.Command{a, a, r, r})); !cmp.Equal(got, []lock.Code{"", limited, "", limited}) {
			t.Errorf("half a second later: %v", got)
		}
	})
}

func TestTooLongBatchIsRefusedUnread(t *testing.T) {
	t.Parallel()
	inner := new(recordingService)
	locks := access.Guard(inner, access.Limits{Rate: 0.001})
	ctx := withKey(t, access.Lock)
	for _, r := range locks.Batch(ctx, make([]lock.Command, paddock.MaxBatch+1)) {
		if !errors.Is(r.Err, lock.ErrInvalid) {
			t.Fatal(r.Err)
		}
	}
	if got := locks.Batch(ctx, []lock.Command{lock.Release{Locks: []string{"x"}}}); got[0].Err != nil || len(inner.items) != 1 {
		t.Errorf("%v, and %d were passed on", got, len(inner.items))
	}
}
