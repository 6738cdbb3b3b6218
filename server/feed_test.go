package server_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// long returns an event with a reason of this many bytes.
func long(id int64, reason int) lock.Event {
	e := eventWithID(id)
	e.Reason = strings.Repeat("r", reason)
	return e
}

// TestLongEventsAreSentInOrder checks that pages sent in several pieces have each event once, and a sync at the end.
func TestLongEventsAreSentInOrder(t *testing.T) {
	t.Parallel()
	const events = server.StreamPage + server.StreamPage/2
	h := &fakeEvents{event: func(id int64) lock.Event { return long(id, server.MaxBlockText/7) }}
	s := serve(t, server.Options{Locks: &fake{events: h.events}})
	h.add(events)
	stream := s.stream("/v1/events/stream?cursor=0", "")
	stream.wantNews(1, events)
	stream.want(synced(strconv.Itoa(events)))
	h.add(20)
	stream.wantNews(events+1, events+20)
}

// TestEventsAreReadOnceForAllStreams of the same query, wherever each stream begins.
func TestEventsAreReadOnceForAllStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		h, reads := new(fakeEvents), new(atomic.Int64)
		s, _, end := servePiped(t, server.Options{Locks: &fake{
			events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
				reads.Add(1)
				return h.events(ctx, q)
			},
		}})
		all := make([]stream, streams)
		for i := range all {
			h.add(3)
			all[i] = s.stream("/v1/events/stream?cursor="+strconv.Itoa(2*i), "")
			all[i].wantNews(int64(2*i)+1, int64(3*i)+3)
			all[i].want(synced(strconv.Itoa(3*i + 3)))
			synctest.Wait()
			for k := range i {
				all[k].wantNews(int64(3*i)+1, int64(3*i)+3)
			}
		}
		if n := reads.Load(); n > 2*streams+1 { // one for each stream to begin, and one for each change
			t.Errorf("%d reads", n)
		}
		for _, one := range all[1:] {
			one.close()
		}
		synctest.Wait()
		h.add(1)
		all[0].want(news(3*streams + 1)) // the others have left
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamsOfOtherNamesAreApart.
func TestStreamsOfOtherNamesAreApart(t *testing.T) {
	t.Parallel()
	h := new(fakeEvents)
	s := serve(t, server.Options{Locks: &fake{events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
		page, err := h.events(ctx, q)
		for i := range page.Items {
			page.Items[i].Name = "of " + strings.Join(q.Names, "") + q.Prefix
		}
		return page, err
	}}})
	all := map[string]stream{"": s.stream("/v1/events/stream", "")}
	for _, name := range []string{"a", "b"} {
		all[name] = s.stream("/v1/events/stream?lock="+name, "")
		all[name+":"] = s.stream("/v1/events/stream?prefix="+name+":", "")
	}
	for _, one := range all {
		one.want(synced("0"))
	}
	h.add(1)
	for name, one := range all {
		if text := one.message(t); !strings.Contains(text, `"lock":"of `+name+`"`) {
			t.Errorf("a stream of %s received %s", name, text)
		}
	}
}

// message returns the text of the next message.
func (s stream) message(t *testing.T) (text string) {
	t.Helper()
	for !strings.HasSuffix(text, "\n\n") {
		line, err := s.text.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text += line
	}
	return text
}

// TestStreamsOfAnotherKeyAreApart: the one key covers all locks of a deadlock, and the other one does not.
func TestStreamsOfAnotherKeyAreApart(t *testing.T) {
	t.Parallel()
	cycle := lock.CycleOf([]lock.DeadlockStep{{Name: "billing:a", Holder: "me", WaitsFor: "her"}, {Name: "hers:secret", Holder: "she", WaitsFor: "me"}})
	h := &fakeEvents{event: func(id int64) lock.Event {
		e := eventWithID(id)
		e.Name, e.Cycle = "billing:a", cycle
		return e
	}}
	k := newKeyring(t)
	s := serve(t, server.Options{Locks: access.Guard(&fake{events: h.events}, access.Limits{}), Keys: k.Keyring})
	all, some := k.follow(s, "read"), k.follow(s, "right")
	all.want(synced("0"))
	some.want(synced("0"))
	h.add(1)
	for _, c := range []struct {
		stream
		sees bool
	}{{all, true}, {some, false}} {
		text := c.message(t)
		if strings.Contains(text, "hers:secret") != c.sees {
			t.Errorf("received %s", text)
		}
	}
}

// fallBehind opens a stream whose client reads no events while there are more than a feed keeps. exhausted is whether
// other streams take all the time that streams may take.
func fallBehind(t *testing.T, exhausted bool, check func(s stream, last int64)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const reason = server.MaxBlockText / 8
		h := &fakeEvents{event: func(id int64) lock.Event { return long(id, reason) }}
		served := server.New(server.Options{Locks: &fake{events: h.events}})
		s, _, end := servePipedServer(t, served)
		slow := s.stream("/v1/events/stream", "")
		slow.want(synced("0"))
		last := int64(0)
		for range 2 * server.MaxFeedText / reason {
			h.add(1)
			last++
			synctest.Wait()
		}
		busy, idle := context.WithCancel(t.Context())
		go func() {
			for ; exhausted && busy.Err() == nil; time.Sleep(time.Second / 10) {
				server.ExhaustStreams(served)
			}
		}()
		synctest.Wait()
		check(slow, last)
		idle()
		h.add(1)
		slow.want(news(last + 1))
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamThatWasLeftBehindReadsAgain what the feed has dropped, if there is time.
func TestStreamThatWasLeftBehindReadsAgain(t *testing.T) {
	fallBehind(t, false, func(s stream, last int64) { s.wantNews(1, last) })
}

// TestStreamThatWasLeftBehindGetsAGap that names the last event before it, if there is no time to read again.
func TestStreamThatWasLeftBehindGetsAGap(t *testing.T) {
	fallBehind(t, true, func(s stream, last int64) {
		id := int64(1)
		next := s.next()
		for ; next == news(id); next = s.next() {
			id++
		}
		if next != gap(strconv.FormatInt(id-1, 10)) || id > last/2 {
			t.Fatalf("received %+v after event %d", next, id-1)
		}
		s.want(synced(strconv.FormatInt(last, 10)))
	})
}

// TestStreamsPayForTheirText, as much as for a turn or more.
func TestStreamsPayForTheirText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const reason = 1 << 10
		h := &fakeEvents{event: func(id int64) lock.Event { return long(id, reason) }}
		served := server.New(server.Options{Locks: &fake{events: h.events}})
		s, _, end := servePipedServer(t, served)
		one := s.stream("/v1/events/stream", "")
		one.want(synced("0"))
		synctest.Wait()
		before := server.StreamBudget(served)
		h.add(100)
		one.wantNews(1, 100)
		synctest.Wait()
		if cost := before - server.StreamBudget(served); cost < server.TurnKBytes+100*reason>>10 {
			t.Errorf("100 events of more than 1 KiB cost %d KiB", cost)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamsWriteALimitedAmount: many small pieces, or as much text, wait for their turn.
func TestStreamsWriteALimitedAmount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{0, 256} {
			turn := server.Turns()
			start := time.Now()
			for range 10 * server.StreamKBytes * runtime.GOMAXPROCS(0) / (server.TurnKBytes + size) {
				if err := turn(t.Context(), size); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took < 9*time.Second || took > 10*time.Second {
				t.Errorf("pieces of %d KiB, ten times what may be written in a second, take %v", size, took)
			}
		}
	})
}

// TestAStreamThatIsNotCoveredWaitsByItself: one that comes with the id of an event that was lost, and one that is up to
// date. The first is told of its gap, and the second neither reads nor writes without news.
func TestAStreamThatIsNotCoveredWaitsByItself(t *testing.T) {
	t.Parallel()
	for name, cursors := range map[string][2]string{"the lost id is the first": {"1000", "900"}, "the lost id is the second": {"900", "1000"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				happens, reads := make(chan struct{}), new(atomic.Int64)
				s, _, end := servePiped(t, server.Options{Locks: &fake{
					events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
						reads.Add(1)
						p := paddock.Page[lock.Event]{Next: q.Cursor}
						happened := happens
						if q.Cursor == "5000" {
							happened = nil
						}
						select {
						case <-happened:
							p = paddock.Page[lock.Event]{Items: []lock.Event{eventWithID(5000)}, Next: "5000", Gap: q.Cursor == "1000"}
						case <-time.After(q.Wait):
						case <-ctx.Done():
						}
						return p, ctx.Err()
					},
				}})
				streams := map[string]stream{}
				for _, c := range cursors {
					streams[c] = s.stream("/v1/events/stream?cursor="+c, "")
					streams[c].want(synced(c))
					synctest.Wait()
				}
				before := reads.Load()
				time.Sleep(time.Second)
				if n := reads.Load() - before; n > 0 {
					t.Errorf("%d reads in a second without events", n)
				}
				close(happens)
				streams["900"].want(news(5000))
				streams["1000"].want(gap("1000"))
				streams["1000"].want(news(5000))
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestTheIdsOfAStreamOverCellsNeverGoBack: the feed has merged the events of two cells in another order than the stream,
// which has read an event that is in the middle of the feed by itself.
func TestTheIdsOfAStreamOverCellsNeverGoBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := func(cell int, id int64) lock.Event {
			e := eventWithID(id)
			e.Cell = cell
			return e
		}
		s, _, end := servePiped(t, server.Options{Locks: &fake{
			events: func(ctx context.Context, q paddock.EventQuery) (p paddock.Page[lock.Event], err error) {
				p.Next = q.Cursor
				switch {
				case q.Wait == 0:
				case q.Cursor == "00-8.01-5":
					time.Sleep(time.Second)
					p.Items, p.Next = []lock.Event{in(0, 9), in(1, 6), in(0, 10), in(1, 7)}, "00-10.01-7"
				case q.Cursor == "00-10.01-5":
					time.Sleep(2 * time.Second) // then the feed is further
				default:
					<-ctx.Done()
				}
				return p, ctx.Err()
			},
		}})
		streams := map[string]stream{}
		for _, from := range []string{"00-8.01-5", "00-10.01-5"} {
			streams[from] = s.stream("/v1/events/stream?cursor="+from, "")
			streams[from].want(synced(from))
			synctest.Wait()
		}
		for from, all := range map[string][]string{
			"00-8.01-5":  {"00-9.01-5", "00-9.01-6", "00-10.01-6", "00-10.01-7"},
			"00-10.01-5": {"00-10.01-6", "00-10.01-7"},
		} {
			for _, want := range all {
				id, text, _ := strings.Cut(streams[from].message(t), "\n")
				for strings.HasPrefix(id, ":") {
					id, text, _ = strings.Cut(streams[from].message(t), "\n")
				}
				if id != "id: "+want || !strings.HasPrefix(text, "event: ") {
					t.Errorf("from %s: %q %q, want the id %s", from, id, text, want)
				}
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestAFeedThatPanicsEndsItsStreams and nothing else.
func TestAFeedThatPanicsEndsItsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeEvents)
		s, _, end := servePiped(t, server.Options{Locks: &fake{
			events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
				if q.Wait > 0 {
					panic("made up")
				}
				return h.events(ctx, q)
			},
		}})
		live := s.stream("/v1/events/stream", "")
		if text := live.message(t); !strings.Contains(text, "event: sync") {
			t.Errorf("received %q", text)
		}
		if text := live.message(t); text != ": this replica cannot continue the stream; reconnect\n\n" {
			t.Errorf("received %q", text)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestAFeedIsLiveAfterItsLastEvent only, however its page is cut into blocks, and keeps so many blocks.
func TestAFeedIsLiveAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	full := paddock.Page[lock.Event]{Gap: true, Next: "200"}
	for i := range server.StreamPage {
		full.Items = append(full.Items, long(int64(i+1), 400))
	}
	if live, blocks := server.FeedOf(t, full); blocks < 2 || live != 0 {
		t.Errorf("of %d blocks of a full page %d are live", blocks, live)
	}
	var unreadable []paddock.Page[lock.Event]
	for i := range 2 * server.MaxFeedBlocks {
		unreadable = append(unreadable, paddock.Page[lock.Event]{Unreadable: make([]paddock.Unreadable, 1), Next: strconv.Itoa(i + 1)})
	}
	if _, blocks := server.FeedOf(t, unreadable...); blocks != server.MaxFeedBlocks {
		t.Errorf("a feed has %d blocks", blocks)
	}
}
