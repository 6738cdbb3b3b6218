package server_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// TestEventIsEncodedOnceForAllStreams unless another event has its id, as after a database restore.
func TestEventIsEncodedOnceForAllStreams(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{})
	before, after := eventWithID(7), eventWithID(7)
	after.Holder = "after"
	text := server.EventText(s, before)
	if again := server.EventText(s, before); !bytes.Contains(text, []byte(`"holder":"<h>`)) || &again[0] != &text[0] {
		t.Errorf("sent %s, then %s", text, again)
	}
	if text := server.EventText(s, after); !bytes.Contains(text, []byte(`"holder":"after"`)) {
		t.Errorf("sent %s", text)
	}
}

// long returns an event with a reason of this many bytes.
func long(id int64, reason int) lock.Event {
	e := eventWithID(id)
	e.Reason = strings.Repeat("r", reason)
	return e
}

func TestStreamTextIsBounded(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{})
	for _, reason := range []int{0, 1000, 2000, server.MaxStreamText / 2, 2 * server.MaxStreamText} {
		p := paddock.Page[lock.Event]{Gap: true, Next: strconv.Itoa(server.StreamPage)}
		for id := range int64(server.StreamPage) {
			p.Items = append(p.Items, long(id+1, reason))
		}
		texts, next := server.PageTexts(s, p, "0")
		size := len(bytes.Join(texts[1:], nil)) // after the gap
		if size > server.MaxStreamText && len(texts) > 2 {
			t.Errorf("with reasons of %d bytes %d texts have %d bytes", reason, len(texts), size)
		}
		last := strconv.Itoa(len(texts) - 1)
		if next != last || !bytes.HasPrefix(texts[len(texts)-1], []byte("id: "+last+"\n")) {
			t.Errorf("with reasons of %d bytes, %d texts have the next cursor %s", reason, len(texts), next)
		}
		if whole := len(texts) == server.StreamPage+1; whole != (reason == 0) {
			t.Errorf("with reasons of %d bytes there are %d texts", reason, len(texts))
		}
	}
}

// TestLongEventsAreSentInOrder checks that a page sent in several pieces has each event once, and a sync at the end.
func TestLongEventsAreSentInOrder(t *testing.T) {
	t.Parallel()
	const events = server.StreamPage + server.StreamPage/2
	h := &fakeEvents{event: func(id int64) lock.Event { return long(id, server.MaxStreamText/7) }}
	s := serve(t, server.Options{Locks: &fake{events: h.events}})
	h.add(events)
	stream := s.stream("/v1/events/stream?cursor=0", "")
	stream.wantNews(1, events)
	stream.want(synced(strconv.Itoa(events)))
	h.add(20)
	stream.wantNews(events+1, events+20)
}
