package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func TestStreamSendsEvents(t *testing.T) {
	t.Parallel()
	h := new(fakeEvents)
	s := serve(t, server.Options{Locks: &fake{events: h.events}})
	h.add(3)
	now := s.stream("/v1/events/stream", "")
	now.want(synced("3"))
	h.add(1)
	now.want(news(4))
	h.add(4)
	now.wantNews(5, 8)
	now.close()

	h.add(2*server.StreamPage - 4) // two full pages after 4
	again := s.stream("/v1/events/stream?cursor=2", "4")
	again.wantNews(5, 2*server.StreamPage+4)
	again.want(synced("404"))
	h.add(server.StreamPage + 1)
	again.wantNews(405, 605)
	s.stream("/v1/events/stream?cursor=604", "").want(news(605), synced("605"))
	s.stream("/v1/events/stream?cursor=", "").want(news(1))
}

func TestStreamSendsSyncAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, start := new(fakeEvents), time.Now()
		h.add(server.StreamPage) // exactly a full page
		s, _, end := servePiped(t, server.Options{Locks: &fake{events: h.events}})
		stream := s.stream("/v1/events/stream?cursor=0", "")
		stream.wantNews(1, server.StreamPage)
		if stream.want(synced("200")); time.Since(start) != 0 {
			t.Errorf("received after %v", time.Since(start))
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestStreamSendsGap(t *testing.T) {
	t.Parallel()
	h := new(fakeEvents)
	s := serve(t, server.Options{Locks: &fake{events: h.events}})
	h.add(5)
	h.prune()
	h.add(1)
	late := s.stream("/v1/events/stream", "3")
	late.want(gap("3"), news(6), synced("6"))
	s.stream("/v1/events/stream", "5").want(news(6), synced("6"))

	none := s.stream("/v1/events/stream?cursor=0", "")
	none.want(gap("0"), news(6), synced("6"))
	h.add(1)
	none.want(news(7))
	late.want(news(7))
}

// TestGapInMidStream checks that a slow client receives a gap, and a sync when it is up to date again.
func TestGapInMidStream(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{events: paged(paddock.Page[lock.Event]{Next: "1"}, paddock.Page[lock.Event]{Next: "9", Gap: true},
		paddock.Page[lock.Event]{Next: "10", Items: []lock.Event{eventWithID(10)}})}})
	s.stream("/v1/events/stream?prefix=a:", "").want(synced("1"), gap("1"), synced("9"), news(10))
}

// TestStreamNamesWhatCannotBeRead, alone and together with events. The cursor goes on all the same.
func TestStreamNamesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	bad := []paddock.Unreadable{{Name: "a", Detail: "The row cannot be read."}, {Detail: "Neither can this one."}}
	s := serve(t, server.Options{Locks: &fake{events: paged(paddock.Page[lock.Event]{Next: "5", Unreadable: bad[:1]},
		paddock.Page[lock.Event]{Next: "9", Unreadable: bad}, paddock.Page[lock.Event]{Next: "10", Items: []lock.Event{eventWithID(10)}, Unreadable: bad[1:]})}})
	first := func(id string) message {
		return message{id: id, name: "unreadable", data: `{"detail":"The row cannot be read.","name":"a"}`}
	}
	second := func(id string) message {
		return message{id: id, name: "unreadable", data: `{"detail":"Neither can this one."}`}
	}
	s.stream("/v1/events/stream", "4").want(first("4"), synced("5"),
		first("5"), second("5"), message{id: "9", comment: "still here"}, second("9"), news(10))
}

func TestStreamQueriesItsParameters(t *testing.T) {
	t.Parallel()
	var asked []paddock.EventQuery
	s := serve(t, server.Options{Locks: &fake{events: func(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
		asked = append(asked, q)
		return paddock.Page[lock.Event]{}, lock.Invalid("cursor", "was not returned by a page")
	}}})
	refused := func(path, last, pointer string) {
		r := s.request(http.MethodGet, path, "")
		r.Header["Last-Event-Id"] = []string{last}
		s.do(r).want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request", "pointer": pointer})
	}
	refused("/v1/events/stream?lock=a:b&cursor=x", "", "cursor")
	refused("/v1/events/stream?prefix=a&cursor=x", "y", "Last-Event-ID")
	want := []paddock.EventQuery{{Names: []string{"a:b"}, Cursor: "x", Limit: server.StreamPage}, {Prefix: "a", Cursor: "y", Limit: server.StreamPage}}
	if !cmp.Equal(asked, want, cmpopts.EquateEmpty()) {
		t.Errorf("asked for %+v", asked)
	}
	r := s.request(http.MethodGet, "/v1/events/stream", "")
	r.Header["Last-Event-Id"] = []string{"1", "2"}
	s.do(r).want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request", "pointer": "Last-Event-ID"})
}

func TestHeadOfAStreamEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{events: new(fakeEvents).events}})
	got := s.send(http.MethodHead, "/v1/events/stream", "")
	if got.want(t, http.StatusOK, nil); !isStream(got.Response) {
		t.Errorf("headers %v", got.Header)
	}
	r := s.request(http.MethodHead, "/v1/events/stream?cursor=x", "")
	s.do(r).want(t, http.StatusBadRequest, nil)
}

func TestIdleStreamSendsKeepAlives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		moved := make(chan string, 1)
		s, _, end := servePiped(t, server.Options{Locks: &fake{events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
			select {
			case <-time.After(q.Wait):
			case <-ctx.Done():
				return paddock.Page[lock.Event]{}, ctx.Err()
			}
			select {
			case q.Cursor = <-moved:
			default:
			}
			return paddock.Page[lock.Event]{Next: q.Cursor}, nil
		}}})
		stream, start := s.stream("/v1/events/stream?lock=a", "7"), time.Now()
		stream.want(synced("7"), message{comment: "still here"}, message{comment: "still here"})
		if took := time.Since(start); took != 2*server.KeepAliveInterval {
			t.Errorf("two comments after %v", took)
		}
		moved <- "9" // events of other locks
		stream.want(message{id: "9", comment: "still here"}, message{comment: "still here"})
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, log := new(fakeEvents), new(proctest.Transcript)
		_, p, end := servePiped(t, server.Options{Locks: &fake{events: h.events}, Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		c, err := p.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("GET /v1/events/stream HTTP/1.1\r\nHost: p\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		<-time.After(server.WriteTimeout - 1)
		synctest.Wait()
		if log.String() != "" {
			t.Errorf("disconnected early: %s", log)
		}
		<-time.After(1)
		synctest.Wait()
		s := harness{t: t, log: log}
		lines := s.lines("request")
		if len(lines) != 1 || lines[0]["route"] != "/v1/events/stream" || lines[0]["status"] != 200.0 ||
			lines[0]["duration"] != float64(server.WriteTimeout) {
			t.Errorf("logged %v", lines)
		}
		if err := errors.Join(c.Close(), end()); err != nil {
			t.Error(err)
		}
	})
}

func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		s, _, end := servePiped(t, server.Options{Locks: &fake{events: new(fakeEvents).events}, MaxStreams: most})
		var first stream
		for range most {
			first = s.stream("/v1/events/stream", "")
			first.want(synced("0"))
		}
		s.get("/v1/events/stream").want(t, http.StatusTooManyRequests, map[string]any{"code": "too_many_waiters", "retry_after_ms": 1000.0})
		s.get("/v1/events").want(t, http.StatusOK, nil)
		first.close()
		synctest.Wait()
		s.stream("/v1/events/stream", "").want(synced("0"))
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// failingStream returns a harness with the events of h, which first returns the errors.
func failingStream(t *testing.T, h *fakeEvents, fails <-chan error) (harness, func() error) {
	t.Helper()
	log := new(proctest.Transcript)
	s, _, end := servePiped(t, server.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), Locks: &fake{
		events: func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
			select {
			case err := <-fails:
				return paddock.Page[lock.Event]{}, err
			default:
				return h.events(ctx, q)
			}
		},
	}})
	s.log = log
	return s, end
}

func TestStreamRetriesAnUnavailableService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, fails := new(fakeEvents), make(chan error, 10)
		s, end := failingStream(t, h, fails)
		stream := s.stream("/v1/events/stream", "")
		stream.want(synced("0"))
		synctest.Wait()
		for range server.MaxStreamAttempts - 1 {
			fails <- &lock.Error{Code: lock.ErrUnavailable}
		}
		h.add(1)
		stream.want(news(1))
		start := time.Now()
		h.add(1)
		if stream.want(news(2)); time.Since(start) != (server.MaxStreamAttempts-1)*server.StreamRetryDelay {
			t.Errorf("received after %v", time.Since(start))
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func TestStreamEndsWhenTheServiceFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, fails := new(fakeEvents), make(chan error, 10)
		s, end := failingStream(t, h, fails)
		fails <- &lock.Error{Code: lock.ErrUnavailable}
		s.get("/v1/events/stream").want(t, http.StatusServiceUnavailable, nil)

		brief, long := errors.New("hunter2"), &lock.Error{Code: lock.ErrUnavailable, Cause: errors.New("hunter3")}
		for last, errs := range [][]error{{brief}, {long, long, long}} {
			stream := s.stream("/v1/events/stream", strconv.Itoa(last))
			stream.want(synced(strconv.Itoa(last)))
			synctest.Wait()
			for _, err := range errs {
				fails <- err
			}
			h.add(1)
			stream.want(news(int64(last+1)), message{comment: "this replica cannot continue the stream; reconnect"}, message{ended: true})
		}
		lines := s.lines("request refused")
		if len(lines) != 3 || lines[1]["level"] != "ERROR" || lines[2]["level"] != "WARN" || lines[2]["cause"] != "hunter3" {
			t.Errorf("logged %v", lines)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
