package client_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const streamText = `id: 41
event: sync
data: {"cursor":"41"}

id: 42
event: granted
data: {"id":42,"at":"2026-01-02T03:04:05.678901Z","lock":"jobs:nightly","slot":0,"revision":1,"kind":"granted","mode":"exclusive","holder":"w","fencing_token":7}

: still here

id: 45
: still here

id: 45
event: gap
data: {"cursor":"45"}

id: 45
event: unreadable
data: {"name":"jobs:nightly","detail":"The row cannot be read."}

id: 50
event: released
data: {"id":50,"at":"2026-01-02T03:04:06.678901Z","lock":"jobs:nightly","slot":0,"revision":2,"kind":"released","mode":"exclusive","holder":"w","fencing_token":7}

id: 51
event: gra`

func TestAStreamIsReadMessageByMessage(t *testing.T) {
	t.Parallel()
	var asked *http.Request
	c := over(t, func(r *http.Request) (*http.Response, error) {
		asked = r
		return reply(r, http.StatusOK, "text/event-stream", streamText), nil
	})
	s, err := c.Stream(t.Context(), paddock.EventQuery{Prefix: "jobs:", Cursor: "40"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if uri, id := asked.URL.RequestURI(), asked.Header.Get("Last-Event-ID"); uri != "/v1/events/stream?prefix=jobs%3A" || id != "40" {
		t.Errorf("asked for %s after %q", uri, id)
	}
	for i, want := range []struct {
		next string
		id   int64 // of the event; zero for a page without one
		gap  bool
		bad  string // the lock of a row that cannot be read
	}{{"41", 0, false, ""}, {"42", 42, false, ""}, {"45", 0, false, ""}, {"45", 0, true, ""}, {"45", 0, false, "jobs:nightly"},
		{"50", 50, false, ""}} {
		page, err := s.Next()
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		id := int64(0)
		for _, e := range page.Items {
			id += e.ID
		}
		bad := ""
		for _, u := range page.Unreadable {
			bad += u.Name
		}
		if bad != want.bad || page.Next != want.next || id != want.id || page.Gap != want.gap || s.Cursor() != want.next {
			t.Errorf("message %d is %+v, want %+v", i, page, want)
		}
	}
	if _, err = s.Next(); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("half a message is %v", err)
	}
}

func TestAStreamThatBeginsNowSendsNoCursor(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		if _, sent := r.Header["Last-Event-Id"]; sent || r.URL.RawQuery != "" {
			t.Errorf("sent %v to %s", r.Header, r.URL)
		}
		return reply(r, http.StatusOK, "text/event-stream", ""), nil
	})
	for _, cursor := range []string{"", paddock.CursorNow} {
		s, err := c.Stream(t.Context(), paddock.EventQuery{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAStreamThatIsRefusedIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way  roundTripFunc
		want lock.Code
	}{
		"by the service":      {saying(http.StatusTooManyRequests, "application/problem+json", problem(`"code":"too_many_waiters"`)), lock.ErrTooManyWaiters},
		"by something else":   {saying(http.StatusOK, "text/html", "<p>Hello"), lock.ErrUnavailable},
		"by a gateway":        {saying(http.StatusBadGateway, "text/html", "<p>Sorry"), lock.ErrUnavailable},
		"without an answer":   {func(*http.Request) (*http.Response, error) { return nil, errors.New("cut") }, lock.ErrUnavailable},
		"by an event's shape": {saying(http.StatusOK, "text/event-stream", "event: granted\ndata: {\"id\":\"x\"}\n\n"), lock.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := over(t, c.way).Stream(t.Context(), paddock.EventQuery{})
			if err == nil {
				_, err = s.Next()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
		})
	}
}
