package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// keyEndings are the ways in which a key ends, and what who waits under it is told.
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

// TestWhoWaitsUnderAKeyThatEndsIsToldSo has calls of each method that waits, wait when
// the key is revoked, edited, or over.
func TestWhoWaitsUnderAKeyThatEndsIsToldSo(t *testing.T) {
	for name, end := range keyEndings() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *fixture, _ access.Key, _ string) {
				k, secret, err := access.Issue("ci", access.Admin, nil, time.Now().Add(aWhile/2))
				if err = errors.Join(err, access.Add(r.path, k)); err != nil {
					t.Fatal(err)
				}
				r.waitForReload()
				ctx := access.WithKey(r.Context(), r.finds(secret))
				guarded := access.Guard(newSpy(), access.Limits{Waiters: 3})
				told := make(chan error, len(methods))
				var wg sync.WaitGroup
				for name, m := range methods {
					if m.wait != nil {
						wg.Go(func() { told <- fmt.Errorf("%s: %w", name, m.wait(ctx, guarded, "x")) })
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
						wantCode(r, <-told, want)
					}
					wantCode(r, fmt.Errorf("%s after that: %w", name, m.call(ctx, guarded, "x")), want)
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

// A hastyService service may have granted something when it is told to stop.
type hastyService struct{ lock.Service }

func (hastyService) Acquire(ctx context.Context, _ lock.Acquire) (lock.Grant, error) {
	<-ctx.Done()
	return lock.Grant{}, &lock.Error{Code: lock.ErrUnknownOutcome, Cause: ctx.Err()}
}

// TestWhoMayHaveBeenGrantedSomethingIsToldSo: that its key has ended is nothing to it
// beside a lease that it may have.
func TestWhoMayHaveBeenGrantedSomethingIsToldSo(t *testing.T) {
	inBubble(t, func(r *fixture, k access.Key, secret string) {
		ctx := access.WithKey(r.Context(), r.finds(secret))
		if _, err := access.Revoke(r.path, k.ID); err != nil {
			r.Fatal(err)
		}
		_, err := access.Guard(hastyService{}, access.Limits{}).Acquire(ctx, lock.Acquire{Name: "x", Wait: aWhile})
		wantCode(r, err, lock.ErrUnknownOutcome)
	})
}

func TestAWaitThatIsOverForAnotherReasonIsNotTheKeys(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, secret string) {
		ctx, cancel := context.WithCancelCause(access.WithKey(r.Context(), r.finds(secret)))
		guarded := access.Guard(newSpy(), access.Limits{})
		time.AfterFunc(time.Second, func() { cancel(&lock.Error{Code: lock.ErrLeaseLost}) })
		if _, err := guarded.Acquire(ctx, lock.Acquire{Name: "x", Wait: aWhile}); !errors.Is(err, lock.ErrUnavailable) {
			r.Error(err)
		}
	})
}

func TestWhatIsCountedOfAKeyIsForgottenWithIt(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, _ string) {
		guarded := access.Guard(newSpy(), access.Limits{Rate: 1})
		for i := range 20 {
			k, secret := addKey(r.T, r.path, access.Read)
			r.waitForReload()
			if _, err := guarded.Lock(access.WithKey(r.Context(), r.finds(secret)), "x"); err != nil {
				r.Fatal(err)
			}
			if _, err := access.Revoke(r.path, k.ID); err != nil {
				r.Fatal(err)
			}
			if n := access.Metered(guarded); n != 1 {
				r.Fatalf("the key %d: %d are counted", i, n)
			}
			r.waitForReload()
		}
		if n := access.Metered(guarded); n != 0 {
			r.Errorf("%d are counted when no key is left that was used", n)
		}
	})
}
