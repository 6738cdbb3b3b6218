package cells_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/store/internal/cells"
)

// routed calls the cell that has the group, as a router does, until that answers.
func (h *harness) routed(ctx context.Context, group string, call func(*store.Store) error) error {
	for {
		var maps []*placement.Map
		for _, c := range h.cells {
			maps = append(maps, h.in(c.Name).Placement())
		}
		err := call(h.in(placement.Route(group, maps...)))
		if !errors.As(err, new(*placement.ElsewhereError)) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// A guarded is what the locks of the load guard.
type guarded struct {
	sync.Mutex
	holder string
	token  lock.Token
}

// enter notes that the holder works under the token, and returns what is wrong with that.
func (g *guarded) enter(holder string, token lock.Token) error {
	g.Lock()
	defer g.Unlock()
	if g.holder != "" {
		return fmt.Errorf("%s and %s hold the lock, with the tokens %d and %d", g.holder, holder, g.token, token)
	}
	if token <= g.token {
		return fmt.Errorf("the token %d was granted after %d", token, g.token)
	}
	g.holder, g.token = holder, token
	return nil
}

func (g *guarded) leave() {
	g.Lock()
	defer g.Unlock()
	g.holder = ""
}

// TestNothingIsGrantedTwiceWhileGroupsMove: clients acquire, renew and release locks of a group, alone, in queues and in
// sets, while the group moves between three cells, and the commands are killed.
func TestNothingIsGrantedTwiceWhileGroupsMove(t *testing.T) {
	t.Parallel()
	const clients, moves, locks = 12, 12, 3
	h := newHarness(t, "main", "spare", "third")
	group := h.groupOf("main", 0)
	var resources [locks]guarded
	var grants atomic.Int64
	var stop atomic.Bool
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			for n := 0; !stop.Load(); n++ {
				first := (i + n) % locks
				names := []int{first}
				if n%4 == 3 && first+1 < locks {
					names = append(names, first+1)
				}
				if err := h.cycle(group, names, resources[:], fmt.Sprintf("client %d", i)); err != nil {
					t.Error(err)
					return
				}
				grants.Add(1)
			}
		})
	}
	for n := range moves {
		to := h.cells[(n+1)%len(h.cells)].Name
		before := grants.Load()
		for killed := rand.IntN(len(cells.Steps) + 1); ; killed = len(cells.Steps) {
			err := cells.PinAnd(t.Context(), "", h.cells, []string{group}, to, func(step string) error {
				if killed < len(cells.Steps) && step == cells.Steps[killed] {
					return cells.ErrKilled
				}
				return nil
			})
			if err == nil {
				break
			}
			if !errors.Is(err, cells.ErrKilled) {
				t.Fatal(err)
			}
		}
		await.Until(t, "clients go on", func() bool { return grants.Load() > before+clients || t.Failed() })
	}
	stop.Store(true)
	work.Wait()
	h.isIn(h.cells[moves%len(h.cells)].Name, group)
	t.Logf("%d grants", grants.Load())
}

// cycle acquires the locks, renews them, and releases them.
func (h *harness) cycle(group string, names []int, resources []guarded, holder string) error {
	ctx := h.Context()
	a := acquire(fmt.Sprintf("%s:%d", group, names[0]))
	a.Holder, a.Wait = holder, 20*time.Second
	for _, n := range names[1:] {
		a.Locks = append(a.Locks, lock.Member{Name: fmt.Sprintf("%s:%d", group, n), Mode: lock.Exclusive})
	}
	var g lock.Grant
	err := h.routed(ctx, group, func(s *store.Store) (err error) {
		g, err = s.Acquire(ctx, a)
		return err
	})
	if errors.Is(err, lock.ErrHeld) {
		return nil // the wait was over
	}
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	for i, n := range names {
		if err := resources[n].enter(holder, g.Leases[i].Token); err != nil {
			return err
		}
	}
	locks := a.Names()
	if err := h.routed(ctx, group, func(s *store.Store) error {
		_, err := s.Renew(ctx, lock.Renew{Locks: locks, LeaseID: g.ID})
		return err
	}); err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	for _, n := range names {
		resources[n].leave()
	}
	if err := h.routed(ctx, group, func(s *store.Store) error {
		return s.Release(ctx, lock.Release{Locks: locks, LeaseID: g.ID})
	}); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}
