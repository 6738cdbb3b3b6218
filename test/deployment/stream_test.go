package deployment_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// An eventFollower reads the events of the lock of a fixture from streams. It disconnects after each hundredth event
// and continues at another replica.
type eventFollower struct {
	done  chan struct{} // closed when it has heard all it wanted
	data  []string      // of each event
	names []string
	err   error
}

// startFollowing reads n events, from the first.
func (s *fixture) startFollowing(n int) *eventFollower {
	f := &eventFollower{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		last := "0"
		for i := 0; len(f.data) < n && f.err == nil; i++ {
			last, f.err = f.connect(s, s.replicas[i%len(s.replicas)].base, last, min(len(f.data)+100, n))
		}
	}()
	s.Cleanup(func() { <-f.done })
	return f
}

// connect reads one stream until there are n events in all, and returns the last id.
func (f *eventFollower) connect(s *fixture, base, last string, n int) (_ string, err error) {
	ctx, hangUp := context.WithCancel(s.Context())
	defer hangUp()
	st, err := openStream(ctx, base, url.Values{"lock": {s.name}}, last)
	if err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, st.body.Close()) }()
	for len(f.data) < n {
		e, err := st.next()
		if err != nil {
			return last, err
		}
		last = e.id
		switch e.name {
		case "sync":
		case "gap":
			return last, errors.New("the stream has a gap")
		default:
			f.data, f.names = append(f.data, e.data), append(f.names, e.name)
		}
	}
	return last, nil
}

// check fails the test unless the streams contained exactly the events of the list.
func (f *eventFollower) check(s *fixture) {
	s.Helper()
	select {
	case <-f.done:
	case <-time.After(proctest.Patience):
		s.Fatal("the streams did not end")
	}
	s.must(f.err)
	want, last := s.listEvents()
	if !slices.Equal(f.data, want) {
		s.Fatalf("the streams sent\n%s\nwant\n%s", strings.Join(f.data, "\n"), strings.Join(want, "\n"))
	}
	for i, name := range f.names {
		var e struct{ Kind string }
		s.must(json.Unmarshal([]byte(f.data[i]), &e))
		if e.Kind != name {
			s.Errorf("an event is called %s: %s", name, f.data[i])
		}
	}
	for _, r := range s.replicas {
		st, err := openStream(s.Context(), r.base, url.Values{"lock": {s.name}}, last)
		s.must(err)
		e, err := st.next()
		mustClose(s.T, st.body)
		if err != nil || e.name != "sync" {
			s.Errorf("after the last event comes %+v, %v", e, err)
		}
	}
}

// listEvents returns the events of the lock from the pages of the list, and the last cursor.
func (s *fixture) listEvents() (events []string, cursor string) {
	s.Helper()
	for {
		q := url.Values{"lock": {s.name}, "limit": {"70"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page struct {
			Events []json.RawMessage
			Next   string `json:"next_cursor"`
		}
		s.must(json.Unmarshal([]byte(get(s.T, s.replicas[0].base+"/v1/events?"+q.Encode())), &page))
		for _, e := range page.Events {
			events = append(events, string(e))
		}
		if cursor = page.Next; len(page.Events) == 0 {
			return events, cursor
		}
	}
}

// A stream is an answer of server-sent events.
type stream struct {
	body  io.Closer
	lines *bufio.Scanner
	id    string
}

// A streamEvent is an event of a stream.
type streamEvent struct{ id, name, data string }

func openStream(ctx context.Context, base string, query url.Values, lastID string) (*stream, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events/stream?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Last-Event-ID", lastID)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return nil, errors.Join(fmt.Errorf("the stream is answered %s, %s", res.Status, kind), res.Body.Close())
	}
	return &stream{body: res.Body, lines: bufio.NewScanner(res.Body)}, nil
}

// next returns the next event. It skips comments, and an id without data.
func (st *stream) next() (streamEvent, error) {
	e := streamEvent{}
	for st.lines.Scan() {
		field, value, _ := strings.Cut(st.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			st.id = value
		case "event":
			e.name = value
		case "data":
			e.data += value
		case "":
			if st.lines.Text() == "" && e.data != "" {
				e.id = st.id
				return e, nil
			}
		}
	}
	return e, errors.Join(errors.New("the stream has ended"), st.lines.Err())
}
