package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// The watchFlag is the flag of commands that can go on showing what they show.
type watchFlag struct {
	Watch bool `short:"w" help:"Go on until it is interrupted: on a terminal a view that is kept up to date, otherwise a line for each change."`
}

const (
	// viewTick is the time between two states of a view, in which the time that is left goes down.
	viewTick = time.Second
	// minReread is the least time between two reads of a list that changes all the time.
	minReread = time.Second
)

// watch follows the lock by its version.
func (c *getCommand) watch(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(pollTime + attemptTimeout)
	if err != nil {
		return err
	}
	var seen lock.Lock
	return p.follow(ctx, c.Output, c.limit(), locks, showLockView, func(ctx context.Context, _ *program) ([]lock.Lock, error) {
		w := paddock.Watch{Name: c.Name}
		if seen.Name != "" {
			w.Seen, w.Wait = seen.Version(), rereadAfter([]lock.Lock{seen})
		}
		found, err := locks.Watch(ctx, w)
		if err == nil {
			seen = found
		}
		return []lock.Lock{found}, err
	})
}

// showLockView returns the output for the one lock of a view.
func showLockView(locks []lock.Lock) output { return showLock(locks[0]) }

// watch follows the list by the events of its locks.
func (c *listCommand) watch(ctx context.Context, p *program, query paddock.LockQuery) error {
	locks, err := c.clientWithTimeout(pollTime + attemptTimeout)
	if err != nil {
		return err
	}
	var seen []lock.Lock
	events := paddock.EventQuery{Prefix: c.Prefix, Cursor: paddock.CursorNow}
	return p.follow(ctx, c.Output, c.limit(), locks, showLocks, func(ctx context.Context, p *program) ([]lock.Lock, error) {
		read := time.Now()
		for {
			page, err := locks.Events(ctx, events)
			if err != nil {
				return nil, err
			}
			first := events.Wait == 0
			events.Cursor, events.Wait = page.Next, rereadAfter(seen)
			if first || len(page.Items) > 0 || page.Gap || time.Since(read) >= events.Wait {
				break
			}
		}
		if events.Wait > 0 && seen != nil {
			pause(ctx, minReread-time.Since(read))
		}
		found, err := c.collect(ctx, p, locks, query)
		if err == nil {
			seen = append([]lock.Lock{}, found...)
		}
		return found, err
	})
}

// rereadAfter returns how long to wait for a change of the locks before they are read again: a renewal is no change, so
// half of what is left of the lease that ends first.
func rereadAfter(locks []lock.Lock) time.Duration {
	wait := pollTime
	for _, l := range locks {
		for _, h := range l.Leases {
			if h.Remaining > 0 {
				wait = min(wait, h.Remaining/2)
			}
		}
	}
	return max(wait, minReread)
}

// pause waits for that time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// A display shows locks that change.
type display interface {
	// update shows the locks, or that the last call has failed and is repeated.
	update(ctx context.Context, locks []lock.Lock, failed error) error
	// close shows the last state for good.
	close() error
}

// follow shows what read returns, now and after each change, until ctx ends. read returns when something may have
// changed; its program is the one to log with. Before the first answer an outage may last for the limit, later without
// one.
func (p *program) follow(ctx context.Context, format string, limit time.Duration, locks paddock.Service, show func([]lock.Lock) output,
	read func(context.Context, *program) ([]lock.Lock, error),
) error {
	reader, shown := *p, p.newDisplay(format, locks, show)
	if _, isView := shown.(*view); isView {
		reader.log = slog.New(slog.DiscardHandler) // the view says it
	}
	var err error
	for err == nil {
		var found []lock.Lock
		found, err = retry(ctx, reader.log, limit, func(ctx context.Context) ([]lock.Lock, error) {
			found, err := read(ctx, &reader)
			if mayPass(err) && ctx.Err() == nil {
				err = cmp.Or(shown.update(ctx, nil, err), err)
			}
			return found, err
		})
		if err == nil {
			err = shown.update(ctx, found, nil)
		}
		limit = noLimit
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(shown.close(), explain(err))
}

func (p *program) newDisplay(format string, locks paddock.Service, show func([]lock.Lock) output) display {
	if _, _, terminal := terminalSize(p.stdout); terminal && isTable(format) && p.movesCursor() {
		return p.newView(format, show)
	}
	return &changes{locks: locks, known: map[string]string{}, out: p.stream(format,
		column{"LOCK", 24}, column{"STATE", 7}, column{"MODE", 9}, column{"TOKEN", 8}, column{"HOLDER", 20},
		column{"EXPIRES", instantWidth}, column{"LEFT", 7}, column{"WAITING", 7})}
}

// The changes are a display that prints a row for each lock that has changed.
type changes struct {
	locks paddock.Service
	out   *stream
	known map[string]string // the version of each lock
}

func (c *changes) update(ctx context.Context, locks []lock.Lock, failed error) error {
	if failed != nil {
		return nil // it is logged
	}
	present := map[string]bool{}
	for _, l := range locks {
		present[l.Name] = true
		if err := c.print(l); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.known)) {
		if present[name] {
			continue
		}
		l, err := c.locks.Lock(ctx, name) // which the filters of the list no longer select
		if err == nil {
			err = c.print(l)
		}
		if err != nil {
			return err
		}
		delete(c.known, name)
	}
	return nil
}

// print prints the lock if it has changed.
func (c *changes) print(l lock.Lock) error {
	if c.known[l.Name] == l.Version() {
		return nil
	}
	c.known[l.Name] = l.Version()
	return c.out.print(wire.LockOf(l), l.Name, lockCells(l)...)
}

func (c *changes) close() error { return nil }

// A view is a display that fills the screen of a terminal and is redrawn in place.
type view struct {
	*program
	format string
	show   func([]lock.Lock) output
	quit   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	locks   []lock.Lock
	read    time.Time // when locks was read; zero: not yet
	failure string    // of the last call
	drawn   string
	err     error // of the terminal
}

// What a view sends to the terminal: on a second screen, it begins at the top, erases the rest of each line, and what
// is below, so that it need not erase the screen first.
const (
	enterScreen = "\x1b[?1049h"
	leaveScreen = "\x1b[?1049l"
	toTheTop    = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
)

func (p *program) newView(format string, show func([]lock.Lock) output) *view {
	v := &view{program: p, format: format, show: show, quit: make(chan struct{}), done: make(chan struct{})}
	_, v.err = io.WriteString(p.stdout, enterScreen)
	go v.tick()
	return v
}

// tick redraws the view until it is closed: time passes, and the terminal may get another size.
func (v *view) tick() {
	defer close(v.done)
	ticker := time.NewTicker(viewTick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.mu.Lock()
			v.draw()
			v.mu.Unlock()
		case <-v.quit:
			return
		}
	}
}

func (v *view) update(_ context.Context, locks []lock.Lock, failed error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failure = ""
	if failed != nil {
		v.failure = "call failed; retrying: " + failed.Error()
	} else {
		v.locks, v.read = locks, time.Now()
	}
	v.draw()
	return v.err
}

// draw draws the view, if it has changed, in one write. The caller holds mu.
func (v *view) draw() {
	_, height, _ := terminalSize(v.stdout)
	lines, err := v.lines()
	if err != nil || v.err != nil {
		v.err = cmp.Or(v.err, err)
		return
	}
	if height > 0 && len(lines) > height {
		lines = append(lines[:height-1], fmt.Sprintf("… and %d lines more", len(lines)-height+1))
	}
	text := toTheTop + strings.Join(lines, eraseLine+"\r\n") + eraseLine + eraseBelow
	if text == v.drawn {
		return
	}
	v.drawn = text
	_, v.err = io.WriteString(v.stdout, text)
}

// lines returns the lines of the view, as of now.
func (v *view) lines() ([]string, error) {
	var b bytes.Buffer
	s := v.style(v.format)
	s.width = max(s.width-1, 0) // after a character in the last column, some terminals erase that character, too
	if !v.read.IsZero() {
		shown := v.show(aged(v.locks, time.Since(v.read)))
		if shown.empty != "" && len(shown.names) == 0 {
			b.WriteString(shown.empty + "\n")
		} else if err := shown.write(&b, v.format, s); err != nil {
			return nil, err
		}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if v.failure != "" {
		lines = append(append(lines, ""), s.fold(printable.Text(v.failure), 0, 0)...)
	}
	return lines, nil
}

// aged returns the locks as they are that much later, if nothing but time has passed.
func aged(locks []lock.Lock, passed time.Duration) []lock.Lock {
	locks = slices.Clone(locks)
	for i := range locks {
		locks[i].Leases = slices.Clone(locks[i].Leases)
		for j := range locks[i].Leases {
			locks[i].Leases[j].Remaining = max(locks[i].Leases[j].Remaining-passed, 0)
		}
	}
	return locks
}

// close leaves the second screen, and prints the last state on the first.
func (v *view) close() error {
	close(v.quit)
	<-v.done
	lines, err := v.lines()
	if v.err != nil || err != nil {
		return cmp.Or(v.err, err)
	}
	_, err = io.WriteString(v.stdout, leaveScreen+strings.Join(lines, "\n")+"\n")
	return err
}
