package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/exchange"
	"github.com/paddock-lock/paddock/lock"
)

// fakeEvents are the events of a fake.
type fakeEvents struct {
	mu     sync.Mutex
	last   int64
	pruned int64         // the last pruned event
	news   chan struct{} // closed when an event is added; nil: no caller waits

	event func(id int64) lock.Event // nil: eventWithID
}

// add adds n events.
func (h *fakeEvents) add(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last += n
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}

// prune prunes all events.
func (h *fakeEvents) prune() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pruned = h.last
}

func (h *fakeEvents) events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	over := time.After(q.Wait)
	for {
		p, news, err := h.page(q)
		if err != nil || len(p.Items) > 0 || q.Wait == 0 {
			return p, err
		}
		select {
		case <-news:
		case <-over:
			q.Wait = 0
		case <-ctx.Done():
			return p, &lock.Error{Code: lock.ErrUnavailable, Cause: ctx.Err()}
		}
	}
}

func (h *fakeEvents) page(q paddock.EventQuery) (paddock.Page[lock.Event], <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.last
	if q.Cursor != paddock.CursorNow {
		var err error
		if at, err = strconv.ParseInt("0"+q.Cursor, 10, 64); err != nil {
			return paddock.Page[lock.Event]{}, nil, lock.Invalid("cursor", "is invalid")
		}
	}
	event := h.event
	if event == nil {
		event = eventWithID
	}
	p := paddock.Page[lock.Event]{Gap: at < h.pruned}
	for at = max(at, h.pruned); at < h.last && len(p.Items) < q.Limit; {
		at++
		p.Items = append(p.Items, event(at))
	}
	p.Next = strconv.FormatInt(at, 10)
	if h.news == nil {
		h.news = make(chan struct{})
	}
	return p, h.news, nil
}

// paged returns the events of a fake: these pages, one after the other.
func paged(all ...paddock.Page[lock.Event]) func(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error) {
	pages := make(chan paddock.Page[lock.Event], len(all))
	for _, p := range all {
		pages <- p
	}
	return func(ctx context.Context, _ paddock.EventQuery) (paddock.Page[lock.Event], error) {
		select {
		case p := <-pages:
			return p, nil
		case <-ctx.Done():
			return paddock.Page[lock.Event]{}, ctx.Err()
		}
	}
}

func eventWithID(id int64) lock.Event {
	e := lock.Event{ID: id, At: instant, Name: "a", Slot: 1, Revision: id, Mode: lock.Permit, Holder: "<h>\n"}
	switch e.Kind = lock.Granted + lock.Kind((id-1)%7); e.Kind {
	case lock.Queued, lock.Dequeued:
		e.Place, e.Reason = id, "r"
	default:
		e.Token = lock.Token(id)
	}
	return e
}

// A message is one message of a stream.
type message struct {
	id, name, data, comment string
	ended                   bool
}

func news(id int64) message {
	return message{id: strconv.FormatInt(id, 10), name: eventWithID(id).Kind.String()}
}

func synced(cursor string) message {
	return message{id: cursor, name: "sync", data: `{"cursor":"` + cursor + `"}`}
}

func gap(cursor string) message {
	return message{id: cursor, name: "gap", data: `{"cursor":"` + cursor + `"}`}
}

// A stream is an open event stream, read as a browser's EventSource does.
type stream struct {
	t     *testing.T
	text  *bufio.Reader
	close func()
}

// stream opens the stream at the path, from the last id unless that is empty.
func (s harness) stream(path, last string) stream {
	s.t.Helper()
	r := s.request(http.MethodGet, path, "")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	got, err := s.client.Do(r.WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	if got.StatusCode != http.StatusOK || !isStream(got) || got.Header.Get("X-Accel-Buffering") != "no" || got.ContentLength >= 0 {
		s.t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	return stream{s.t.(*testing.T), bufio.NewReader(got.Body), cancel}
}

// next returns the next message. It checks, records and drops the data of an event.
func (s stream) next() message {
	s.t.Helper()
	var n message
	for {
		line, err := s.text.ReadString('\n')
		if err != nil {
			n.ended = true
			return n
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		into := map[string]*string{"id": &n.id, "event": &n.name, "data": &n.data, "": &n.comment}[field]
		switch {
		case line == "\n":
			s.check(&n)
			return n
		case into == nil || *into != "":
			s.t.Fatalf("received %q after %+v", line, n)
		}
		*into = value
	}
}

func (s stream) check(n *message) {
	s.t.Helper()
	if n.data == "" || n.name == "sync" || n.name == "gap" || n.name == "unreadable" {
		return
	}
	var event map[string]any
	if err := json.Unmarshal([]byte(n.data), &event); err != nil {
		s.t.Fatal(err)
	}
	record(s.t, exchange.Exchange{Event: json.RawMessage(n.data)})
	if fmt.Sprintf("%.0f %s", event["id"], event["kind"]) != n.id+" "+n.name {
		s.t.Errorf("event %s %s has %s", n.id, n.name, n.data)
	}
	n.data = ""
}

// want reads the next messages.
func (s stream) want(all ...message) {
	s.t.Helper()
	for _, want := range all {
		if got := s.next(); got != want {
			s.t.Fatalf("received %+v, want %+v", got, want)
		}
	}
}

// wantNews reads the events from the first to the last id.
func (s stream) wantNews(first, last int64) {
	s.t.Helper()
	for id := first; id <= last; id++ {
		s.want(news(id))
	}
}
