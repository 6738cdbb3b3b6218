package batch

import (
	"context"
	"time"
)

// A turn is leave to run one batch after another, as long as its era is the Group's.
// The zero turn is none.
type turn struct{ era int }

// take returns a turn if one is free. The caller holds mu.
func (g *Group[Req, Res]) take() (turn, bool) {
	if g.running >= max(g.AtOnce, 1) {
		return turn{}, false
	}
	g.running++
	return turn{era: g.era}, true
}

// start has batches run with the turn.
func (g *Group[Req, Res]) start(t turn) { g.crew.Go(func() { g.work(t) }) }

// give gives a turn back. The caller holds mu.
func (g *Group[Req, Res]) give(t turn) {
	if t.era == g.era {
		g.running--
	} else {
		g.late--
	}
	if g.running+g.late == 0 {
		g.idle.Broadcast()
	}
}

// Share is Do for calls that can be done alone, too. A call that finds a turn free,
// or nobody to share a batch with once its turn comes, is done by its caller with
// Alone, which takes that turn as a batch does; ctx is Alone's to heed. So is one
// that run hands back.
func (g *Group[Req, Res]) Share(ctx context.Context, req Req) (Res, error) {
	c, t, err := g.admit(req)
	if err != nil {
		return *new(Res), err
	}
	if c != nil {
		res, err := c.Wait(ctx)
		if !c.isHandedBack() {
			return res, err
		}
		t = c.turn
	}
	if t != (turn{}) {
		defer g.finish(t)
	}
	return g.Alone(ctx, req)
}

// admit returns a turn for a call that need not wait for one, else the call in the
// queue.
func (g *Group[Req, Res]) admit(req Req) (*Call[Req, Res], turn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		if t, free := g.take(); free {
			return nil, t, nil
		}
	}
	if len(g.queue) >= g.maxQueue {
		return nil, turn{}, ErrFull
	}
	c := NewCall[Req, Res](req)
	c.shared = true
	g.add(c)
	return c, turn{}, nil
}

// pass hands a turn to those who wait for one, or gives it back. The caller holds mu.
func (g *Group[Req, Res]) pass(t turn) {
	if t.era == g.era && len(g.queue) > 0 {
		g.start(t)
		return
	}
	g.give(t)
}

// finish is what a call done alone ends its turn with.
func (g *Group[Req, Res]) finish(t turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(t)
}

// setWatch starts to count how long those wait that wait now. The caller holds mu.
func (g *Group[Req, Res]) setWatch() {
	if g.Patience <= 0 {
		return
	}
	if g.watch == nil {
		g.watch = time.AfterFunc(g.Patience, g.loseFaith)
	}
	if len(g.queue) > 0 {
		g.watch.Reset(g.Patience)
	} else {
		g.watch.Stop()
	}
}

// loseFaith runs what waits beside all that runs: nothing of that has ended for too long.
func (g *Group[Req, Res]) loseFaith() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		g.relieve()
	}
}

// Relieve has batches that run now count no longer: what waits, or comes, runs beside
// them. It is for those who run one and see that it may take for ever.
func (g *Group[Req, Res]) Relieve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.relieve()
}

// relieve begins an era. The caller holds mu.
func (g *Group[Req, Res]) relieve() {
	g.late += g.running
	g.running, g.era = 0, g.era+1
	if len(g.queue) == 0 {
		return
	}
	if t, free := g.take(); free {
		g.start(t)
	}
}
