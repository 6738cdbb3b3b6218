package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// keyEndings returns the ways in which a key ends, with the code that waiting calls return.
func keyEndings() map[string]func(r *fixture, k access.Key) (lock.Code, error) {
	all := map[string]func(*fixture, access.Key) (lock.Code, error){
		"revoked": func(r *fixture, k access.Key) (lock.Code, error) {
			return lock.ErrKeyInvalid, errOf(access.Revoke(r.path, k.ID))
		},
		"over": func(_ *fixture, k access.Key) (lock.Code, error) {
			time.Sleep(time.Until(k.ExpiresAt))
			return lock.ErrKeyExpired, nil
		},
	}
	for name, edit := range edits {
		all[name] = func(r *fixture, k access.Key) (lock.Code, error) { return lock.ErrKeyInvalid, r.replaceKey(k.ID, edit) }
	}
	return all
}

// TestWaitingCallsEndWithTheirKey revokes, changes or expires a key during waiting calls of every method.
func TestWaitingCallsEndWithTheirKey(t *testing.T) {
	for name, end := range keyEndings() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *fixture, _ access.Key, _ string) {
				k, secret, err := access.Issue("ci", access.Admin, nil, time.Now().Add(aWhile/2))
				if err = errors.Join(err, access.Add(r.path, k)); err != nil {
					t.Fatal(err)
				}
				r.waitForReload()
				ctx := access.WithKey(r.Context(), r.finds(secret))
				locks := access.Guard(newSpy(), access.Limits{Waiters: 3})
				errs := make(chan error, len(methods))
				var wg sync.WaitGroup
				for name, m := range methods {
					if m.wait != nil {
						wg.Go(func() { errs <- fmt.Errorf("%s: %w", name, m.wait(ctx, locks, "x")) })
					}
				}
				synctest.Wait()
				began := time.Now()
				want, err := end(r, k)
				if err != nil {
					r.Fatal(err)
				}
				wg.Wait()
				if d := time.Since(began); d > aWhile/2 {
					r.Errorf("took %v", d)
				}
				for name, m := range methods {
					if m.wait != nil {
						wantCode(r, <-errs, want)
					}
					wantCode(r, fmt.Errorf("%s after that: %w", name, m.call(ctx, locks, "x")), want)
				}
			})
		})
	}
}

func wantCode(r *fixture, err error, want lock.Code) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf("%v, want %s", err, want)
	}
}

// A hastyService is a Service that may have granted the lock when its context ends.
type hastyService struct{ paddock.Service }

func (hastyService) Acquire(ctx context.Context, _ lock.Acquire) (lock.Grant, error) {
	<-ctx.Done()
	return lock.Grant{}, &lock.Error{Code: lock.ErrUnknownOutcome, Cause: ctx.Err()}
}

// TestUnknownOutcomeIsReturnedEvenIfTheKeyEnded exists because a client must know that it may hold a lease.
func TestUnknownOutcomeIsReturnedEvenIfTheKeyEnded(t *testing.T) {
	inBubble(t, func(r *fixture, k access.Key, secret string) {
		ctx := access.WithKey(r.Context(), r.finds(secret))
		if _, err := access.Revoke(r.path, k.ID); err != nil {
			r.Fatal(err)
		}
		_, err := access.Guard(hastyService{}, access.Limits{}).Acquire(ctx, lock.Acquire{Locks: lock.One("x"), Wait: aWhile})
		wantCode(r, err, lock.ErrUnknownOutcome)
	})
}

func TestOtherCancellationIsNotTheKeys(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, secret string) {
		ctx, cancel := context.WithCancelCause(access.WithKey(r.Context(), r.finds(secret)))
		locks := access.Guard(newSpy(), access.Limits{})
		time.AfterFunc(time.Second, func() { cancel(&lock.Error{Code: lock.ErrLeaseLost}) })
		if _, err := locks.Acquire(ctx, lock.Acquire{Locks: lock.One("x"), Wait: aWhile}); !errors.Is(err, lock.ErrUnavailable) {
			r.Error(err)
		}
	})
}

func TestMeterIsDroppedWithItsKey(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, _ string) {
		locks := access.Guard(newSpy(), access.Limits{Rate: 1})
		for i := range 20 {
			k, secret := addKey(r.T, r.path, access.Read)
			r.waitForReload()
			if _, err := locks.Lock(access.WithKey(r.Context(), r.finds(secret)), "x"); err != nil {
				r.Fatal(err)
			}
			if _, err := access.Revoke(r.path, k.ID); err != nil {
				r.Fatal(err)
			}
			if n := access.Metered(locks); n != 1 {
				r.Fatalf("key %d: there are %d meters", i, n)
			}
			r.waitForReload()
		}
		if n := access.Metered(locks); n != 0 {
			r.Errorf("%d meters are left without a key", n)
		}
	})
}
