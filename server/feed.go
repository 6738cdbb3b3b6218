package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxBlockText is the greatest length of a block's text, in bytes. One longer event is allowed.
	maxBlockText = 64 << 10
	// maxFeedBlocks bounds the blocks of a feed, since one without events has no text.
	maxFeedBlocks = 1000
	// maxFeedText is how much text all feeds together keep for streams that are behind, in bytes. Each feed keeps at
	// least one block.
	maxFeedText = 8 << 20
)

// A block is consecutive events of a query as text/event-stream, and what comes before them.
type block struct {
	after, upTo paddock.Mark // the block has all events after the first mark, up to the second
	gap         bool         // events are missing before these
	unreadable  []paddock.Unreadable
	text        []byte       // only grows, so that streams share it
	events      []blockEvent // in the order of the text
	live        bool         // there were no further events when these were read
}

// A blockEvent is an event of a block.
type blockEvent struct {
	id   int64
	cell int
	upTo paddock.Mark // the id of its text
	end  int          // of its text
}

// in reports whether the event is before the mark.
func (e blockEvent) in(m paddock.Mark) bool { return m.Has(&lock.Event{ID: e.id, Cell: e.cell}) }

// newBlock returns a block without events, for those of the page after the mark.
func newBlock(p paddock.Page[lock.Event], after paddock.Mark) *block {
	return &block{after: after, upTo: after, gap: p.Gap, unreadable: p.Unreadable}
}

// add appends the first events of the page, or of what is left of it, at least one to an empty block. It returns the
// page without them. last reports whether there were no further events after the page.
func (b *block) add(p paddock.Page[lock.Event], last bool) (paddock.Page[lock.Event], error) {
	next, err := paddock.ParseMark(p.Next)
	if err != nil {
		return p, fmt.Errorf("the cursor of a page is none of events: %w", err)
	}
	if next.OfCells() && !b.upTo.OfCells() {
		b.upTo = next.Start()
	}
	for i, e := range p.Items {
		upTo := b.upTo.After(&e)
		text := sseEvent(e, upTo)
		if len(b.events) > 0 && len(b.text)+len(text) > maxBlockText {
			b.live = false
			return paddock.Page[lock.Event]{Items: p.Items[i:], Next: p.Next}, nil
		}
		b.text, b.upTo = append(b.text, text...), upTo
		b.events = append(b.events, blockEvent{e.ID, e.Cell, upTo, len(b.text)})
	}
	b.upTo, b.live = next, last
	return paddock.Page[lock.Event]{Next: p.Next}, nil
}

// since returns the part of the block after the mark. A mark of several cells that another replica has given may be after
// some events in the middle. Then the ids of the others do not tell of these, and a client that goes on from one of them
// would receive these again: so they get ids that do.
func (b *block) since(m paddock.Mark) block {
	part := *b
	if !b.after.Covers(m) {
		part.after, part.gap, part.unreadable = m, false, nil
	}
	part.upTo = b.upTo.Join(m)
	left, begin := b.events, 0
	if n := sort.Search(len(left), func(i int) bool { return !m.Covers(left[i].upTo) }); n > 0 {
		begin, left = left[n-1].end, left[n:]
	}
	for len(left) > 0 && left[0].in(m) {
		begin, left = left[0].end, left[1:]
	}
	if part.text = b.text[begin:]; len(left) == 0 || left[0].upTo.Covers(m) {
		return part
	}
	part.text = nil
	for _, e := range left {
		if !e.in(m) {
			_, rest, _ := bytes.Cut(b.text[begin:e.end], []byte("\n"))
			part.text = slices.Concat(part.text, []byte("id: "+e.upTo.Join(m).String()+"\n"), rest)
		}
		begin = e.end
	}
	return part
}

// A feed follows the events of one query, and keeps the newest ones for its streams.
type feed struct {
	of      feedID
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended
	streams int           // owned by feeds

	mu         sync.Mutex
	blocks     []*block // the events after from, up to upTo; only the last one grows
	size       int      // of their texts
	from, upTo paddock.Mark
	idle       int           // how many pages were empty
	more       chan struct{} // closed when the feed has changed
	err        error         // why the feed has ended
}

// A position is where a stream is in its feed.
type position struct {
	mark paddock.Mark // the stream has all events before it
	idle int          // it was told of as many empty pages
}

// errLeftBehind is returned to a stream if the feed begins after its position.
var errLeftBehind = errors.New("the feed begins later")

// add appends the page, and drops the oldest blocks while all have more bytes than most.
func (f *feed) add(p paddock.Page[lock.Event], most int) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(p.Items) == 0 {
		f.idle++
	}
	last := len(p.Items) < streamPageSize
	begin := p.Gap || len(p.Unreadable) > 0 || len(f.blocks) == 0 || f.blocks[len(f.blocks)-1].gap
	for first := true; first || len(p.Items) > 0; first, begin = false, true {
		if begin {
			f.blocks = append(f.blocks, newBlock(p, f.upTo))
		}
		newest := f.blocks[len(f.blocks)-1]
		f.size -= len(newest.text)
		if p, err = newest.add(p, last); err != nil {
			return err
		}
		f.size, f.upTo = f.size+len(newest.text), newest.upTo
	}
	for (f.size > most || len(f.blocks) > maxFeedBlocks) && len(f.blocks) > 1 {
		f.size, f.from = f.size-len(f.blocks[0].text), f.blocks[0].upTo
		f.blocks = slices.Delete(f.blocks, 0, 1)
	}
	f.wake()
	return nil
}

// end tells the streams that the feed has ended.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.wake()
	close(f.done)
}

// wake makes the streams look for news. The caller holds mu.
func (f *feed) wake() {
	close(f.more)
	f.more = make(chan struct{})
}

// waitFor returns nil if the feed has news for a stream at this position, otherwise a channel that is closed when it
// may have some.
func (f *feed) waitFor(at position) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !at.mark.Covers(f.upTo) || at.idle != f.idle || f.err != nil {
		return nil
	}
	return f.more
}

// covers reports whether the feed has all events after the mark, and has read up to it. A stream with another mark
// would not be told of a gap that the feed does not have, or would wait for the feed to get there.
func (f *feed) covers(m paddock.Mark) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.Covers(f.from) && f.upTo.Covers(m)
}

// take returns what follows the position, at most maxTurnText bytes unless that is less than a block, and the position
// after that. The error is errLeftBehind, or why the feed has ended: once nothing follows, or at once if its key
// has ended.
func (f *feed) take(at position) (parts []block, next position, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil && (at.mark.Covers(f.upTo) || refusals[refusalOf(f.err).Code].status == http.StatusUnauthorized):
		return nil, at, f.err
	case !at.mark.Covers(f.from):
		return nil, at, errLeftBehind
	}
	size := 0
	for _, b := range f.blocks[sort.Search(len(f.blocks), func(i int) bool { return !at.mark.Covers(f.blocks[i].upTo) }):] {
		part := b.since(at.mark)
		if size += len(part.text); size > maxTurnText && len(parts) > 0 {
			return parts, at, nil
		}
		parts, at.mark = append(parts, part), at.mark.Join(b.upTo)
	}
	at.idle = f.idle
	return parts, at, nil
}

// newest returns the position after all events.
func (f *feed) newest() position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return position{f.upTo, f.idle}
}

// A feedID is what all streams of a feed have in common: the query, and the API key, which decides what they may see.
type feedID struct{ name, prefix, key string }

// feeds are the feeds of a Server. Each has at least one stream.
type feeds struct {
	read func(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error)

	mu   sync.Mutex
	open map[feedID]*feed
}

// enter returns the feed with the events of the query, which begins at the mark unless there is a feed already, and the
// position of the mark. It returns nil if the feed does not cover the mark. The stream, whose request this is, must
// leave the feed.
func (s *feeds) enter(r *http.Request, q paddock.EventQuery, m paddock.Mark) (*feed, position) {
	key, hasKey := access.KeyFrom(r.Context())
	of := feedID{strings.Join(q.Names, ""), q.Prefix, fmt.Sprint(key.ID, key.Hash, key.Role, key.Prefixes, key.ExpiresAt)}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.open[of]
	switch {
	case f != nil && !f.covers(m):
		return nil, position{}
	case f == nil:
		ctx, cancel := context.WithCancel(access.Continued(context.Background())) // it outlives the request
		if hasKey {
			ctx = access.WithKey(ctx, key)
		}
		f = &feed{of: of, cancel: cancel, done: make(chan struct{}), from: m, upTo: m, more: make(chan struct{})}
		s.open[of] = f
		go s.run(ctx, f, q)
	}
	f.streams++
	return f, position{m, f.newest().idle}
}

// leave ends the feed with its last stream.
func (s *feeds) leave(f *feed) {
	s.mu.Lock()
	f.streams--
	last := f.streams == 0
	if last && s.open[f.of] == f {
		delete(s.open, f.of)
	}
	s.mu.Unlock()
	if last {
		f.cancel()
		<-f.done
	}
}

// run reads pages until ctx ends or a page cannot be read.
func (s *feeds) run(ctx context.Context, f *feed, q paddock.EventQuery) {
	q.Wait = keepAliveInterval
	for {
		q.Cursor = f.newest().mark.String()
		if err := s.extend(ctx, f, q); err != nil {
			s.mu.Lock()
			if s.open[f.of] == f {
				delete(s.open, f.of)
			}
			s.mu.Unlock()
			f.end(err)
			return
		}
	}
}

// extend reads a page and adds it to the feed.
func (s *feeds) extend(ctx context.Context, f *feed, q paddock.EventQuery) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errPanic(reason)
		}
	}()
	page, err := s.read(ctx, q)
	if err == nil {
		err = ctx.Err() // its streams have left, and wait for it to end
	}
	if err == nil {
		err = f.add(page, maxFeedText/s.count())
	}
	return err
}

// count returns the number of feeds, at least one.
func (s *feeds) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(len(s.open), 1)
}
