package store

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// joinWithin is for how long a call that must wait anyway waits for company, before it
// joins its queue.
const joinWithin = 2 * time.Millisecond

// A porch is where calls stand that are in no hurry, ahead of a group: others wait for the
// same lock already, so none of them can have it at once. They go in with the next call
// that is in a hurry, ahead of it, or when joinWithin is over. So a lock that many want
// costs a transaction for each hand-off, and not another one for each return to the queue.
type porch struct {
	*group
	patience time.Duration

	mu    sync.Mutex
	calls []*call
	over  *time.Timer
}

// do has the command decided, with all that stand here.
func (p *porch) do(ctx context.Context, cmd lock.Command) (outcome, error) {
	c := batch.NewCall[lock.Command, outcome](cmd)
	if !p.offer(c) {
		return outcome{}, batch.ErrFull
	}
	return c.Wait(ctx)
}

// offer has the calls go in behind those that stand here, and returns true; or takes none
// of them, if the group has not room for all.
func (p *porch) offer(calls ...*call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		return p.Offer(calls...)
	}
	room := p.Offer(append(p.calls, calls...)...)
	if room {
		p.leave()
	}
	return room
}

// await has the command decided when there is company.
func (p *porch) await(ctx context.Context, cmd lock.Command) (outcome, error) {
	c := batch.NewCall[lock.Command, outcome](cmd)
	p.mu.Lock()
	if p.calls = append(p.calls, c); len(p.calls) == 1 {
		p.over = time.AfterFunc(p.patience, p.goIn)
	}
	p.mu.Unlock()
	return c.Wait(ctx)
}

// goIn has those who stand here go in, however many are inside: they are no more than may
// wait in all.
func (p *porch) goIn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) > 0 {
		p.Add(p.calls...)
		p.leave()
	}
}

// leave empties the porch. The caller holds mu.
func (p *porch) leave() {
	p.over.Stop()
	p.calls = nil
}
