package verify_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestAWithdrawnGrantEnds also if its lease would have stayed: no client has known of it.
func TestAWithdrawnGrantEnds(t *testing.T) {
	for name, stays := range map[string]bool{"of a lease that ends by itself": false, "of a lease that stays": true} {
		t.Run(name, func(t *testing.T) {
			var h verify.History
			synctest.Test(t, func(t *testing.T) {
				rec := verify.NewRecorder()
				s := rec.Client("one", memlock.New().Replica(1))
				holder := lock.Acquire{Locks: lock.One("play:a"), LeaseID: lock.LeaseID(uuid.New()), Holder: "holder"}
				waiter := lock.Acquire{Locks: holder.Locks, LeaseID: lock.LeaseID(uuid.New()), Holder: "waiter", Wait: lock.MaxWait, Stays: stays}
				if _, err := s.Acquire(t.Context(), holder); err != nil {
					t.Fatal(err)
				}
				granted := make(chan error)
				go func() {
					_, err := s.Acquire(t.Context(), waiter)
					granted <- err
				}()
				time.Sleep(time.Second)
				for _, r := range []lock.Release{{Locks: holder.Names(), LeaseID: holder.LeaseID}, {Locks: holder.Names(), LeaseID: waiter.LeaseID}} {
					if err := s.Release(t.Context(), r); err != nil {
						t.Fatal(err)
					}
					if r.LeaseID == holder.LeaseID {
						if err := <-granted; err != nil {
							t.Fatal(err)
						}
						time.Sleep(lock.ClaimTimeout)
					}
				}
				h = rec.History()
				var err error
				if h.Events, err = verify.Collect(t.Context(), s, "play:"); err != nil {
					t.Fatal(err)
				}
			})
			// As if the answer had been lost, and nobody had claimed the grant.
			s := editable{t, &h}
			refuse(s.call(verify.Acquire, "waiter", 0), lock.Error{Code: lock.ErrUnknownOutcome})
			h.Calls = slices.DeleteFunc(h.Calls, func(c verify.Call) bool {
				r, ok := c.Request.(lock.Release)
				return ok && r.LeaseID == h.Calls[1].Request.(lock.Acquire).LeaseID
			})
			end := s.event(lock.Released, "waiter")
			end.Kind, end.Reason = lock.Withdrawn, lock.ReasonUnclaimed
			if r := h.Check(verify.CheckOptions{}); !r.OK() {
				t.Error(text(t, r))
			}
		})
	}
}
