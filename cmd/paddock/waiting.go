package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/lock"
)

// A waitView is what a terminal shows of a wait for locks: who is in the way, for how long, and how many are ahead.
type waitView struct {
	locks  paddock.Service
	names  []string
	holder string // the one that waits

	mu     sync.Mutex
	place  int64     // of the waiter, once it has been seen
	by     string    // the holder in the way; empty: not known
	since  time.Time // when that holder acquired the lock
	ahead  int       // places in the queue
	frozen bool
}

// showWait shows the progress of an acquire that waits, on a terminal, until the returned function is called.
func (p *program) showWait(ctx context.Context, quiet bool, locks paddock.Service, members []lock.Member, o guard.Options) func() {
	if _, _, terminal := terminalSize(p.stderr); o.Wait == 0 || quiet || !terminal {
		return func() {}
	}
	v := &waitView{locks: locks, names: namesOf(members), holder: o.Holder}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.follow(ctx)
	}()
	stop := p.progress(false, v.line)
	return func() {
		stop()
		cancel()
		<-done
	}
}

// waitViewRetry is the time between two attempts to see what a service shows that does not answer.
const waitViewRetry = 5 * time.Second

// follow reads the first lock after each of its changes, until ctx ends.
func (v *waitView) follow(ctx context.Context) {
	w := paddock.Watch{Name: v.names[0]}
	for ctx.Err() == nil {
		found, err := v.locks.Watch(ctx, w)
		if err == nil {
			err = v.read(ctx, found)
		}
		if err == nil {
			w.Seen, w.Wait = found.Version(), pollTime
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitViewRetry):
		}
	}
}

// read finds the waiter in the queue of the lock.
func (v *waitView) read(ctx context.Context, l lock.Lock) error {
	queue, err := v.locks.Queue(ctx, l.Name)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.by = ""
	own := v.own(queue)
	blocking := firstOf(l)
	if own != nil && len(own.Leases) > 0 {
		blocking = own.Leases[0]
	}
	if blocking.Holder != "" {
		v.by, v.since = printable.Text(blocking.Holder), time.Now().Add(-l.AsOf.Sub(blocking.AcquiredAt))
	}
	v.frozen, v.ahead = l.Frozen != nil, 0
	if own != nil {
		v.ahead = own.Position - 1
	}
	return nil
}

// own returns the waiter of this process, nil if it is not in the queue. At first that is the last one of its holder:
// others of the same holder came before. The caller holds mu.
func (v *waitView) own(queue lock.QueueInfo) (own *lock.WaiterInfo) {
	for i, w := range queue.Waiters {
		if w.Place == v.place || v.place == 0 && w.Holder == v.holder {
			own = &queue.Waiters[i]
		}
	}
	if own != nil {
		v.place = own.Place
	}
	return own
}

// line returns the line of progress, in that many columns; zero: any number. Long names are cut first. If that is not
// enough, the locks are left out, which the command line names; then for how long they are held; then the holder.
func (v *waitView) line(room int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := waitLine{names: strings.Join(v.names, ", "), by: v.by, held: max(time.Since(v.since), 0)}
	if v.frozen {
		w.end += ", frozen"
	}
	if v.ahead > 0 {
		w.end += fmt.Sprintf(", %d ahead", v.ahead)
	}
	for _, leaveOut := range []func(){func() {}, func() { w.names = "" }, func() { w.held = 0 }, func() { w.by = "" }} {
		leaveOut()
		if line := w.fit(room); room == 0 || screen.StringWidth(line) <= room {
			return line
		}
	}
	return w.text()
}

// A waitLine is what a line of progress says of a wait. What is empty is left out.
type waitLine struct {
	names, by string
	held      time.Duration
	end       string
}

func (w waitLine) text() string {
	line := "waiting"
	if w.names != "" {
		line += " for " + w.names
	}
	if w.by != "" {
		line += ", held by " + w.by
		if w.held > 0 {
			line += " for " + short(w.held.Truncate(time.Second))
		}
	}
	return line + w.end
}

// fit returns the text with the longer name cut, column by column, until there is room. No name gets narrower than
// minText.
func (w waitLine) fit(room int) string {
	for room > 0 && screen.StringWidth(w.text()) > room {
		longer := &w.names
		if screen.StringWidth(w.by) > screen.StringWidth(w.names) {
			longer = &w.by
		}
		width := screen.StringWidth(*longer)
		if width <= minText {
			break
		}
		*longer = screen.Truncate(*longer, width-1, "…")
	}
	return w.text()
}
