package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// StreamEvents tells what happens for as long as the client reads, the Service
// answers and the Server runs.
func (a *api) StreamEvents(w http.ResponseWriter, r *http.Request, params wire.StreamEventsParams) {
	key, _ := access.KeyFrom(r.Context())
	if err := a.streams.acquire(key.ID); err != nil {
		a.refuse(w, r, err)
		return
	}
	defer a.streams.release(key.ID)
	query, err := params.Domain()
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	query.Limit = streamPage
	first, err := a.locks.Events(r.Context(), query)
	if err != nil {
		a.refuse(w, r, ofLastEventID(err, params))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx would keep events back
	if r.Method == http.MethodHead {
		return
	}
	s := stream{Server: a.Server, w: w, r: r, query: query, encoder: sseEncoder{events: a.events}}
	s.run(first)
}

// ofLastEventID returns err as one of the header where the cursor came from there.
func ofLastEventID(err error, params wire.StreamEventsParams) error {
	e := (*lock.Error)(nil)
	if wire.ValueOf(params.LastEventID) == "" || !errors.As(err, &e) || e.Field != "cursor" {
		return err
	}
	return lock.Invalid("Last-Event-ID", "is no id that a stream gave; send it as it came, or leave it out to begin now")
}

// A stream is one answer that goes on and on.
type stream struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	query   lock.EventQuery // from where the stream is
	encoder sseEncoder
}

// run tells the pages, until one cannot be had or told. The client is to
// connect again then, unless it is gone.
func (s *stream) run(page lock.Page[lock.Event]) {
	ctx, cancel := context.WithCancel(access.Continued(clientContext(s.r)))
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	for {
		texts, next := s.encoder.encodePage(page, s.query.Cursor)
		page = lock.Page[lock.Event]{} // a client that does not read holds the texts alone
		err := s.send(texts...)
		if err != nil {
			s.log.DebugContext(ctx, "a stream was cut off", "request_id", requestID(s.r), "error", err)
			return
		}
		s.query.Cursor = next
		if page, err = s.next(ctx); err != nil {
			s.end(ctx, err)
			return
		}
	}
}

// next returns the page after the one before, which is empty when it is time for
// a sign of life. It bears with a Service that is unavailable for a moment.
func (s *stream) next(ctx context.Context) (page lock.Page[lock.Event], err error) {
	for try := 1; ; try++ {
		page, err = s.poll(ctx)
		if err == nil || try == maxStreamAttempts || !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrTooManyWaiters) {
			return page, err
		}
		select {
		case <-time.After(streamRetryDelay):
		case <-ctx.Done():
			return page, err
		}
	}
}

// poll waits for news once all that there was has been told.
func (s *stream) poll(ctx context.Context) (lock.Page[lock.Event], error) {
	if s.query.Wait = 0; s.encoder.synced {
		s.query.Wait = keepAliveInterval
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout+s.query.Wait)
	defer cancel()
	return s.locks.Events(ctx, s.query)
}

// send writes what is told at once, without a copy of it. A client that does not read it in time is
// cut off. Once it has left there is no deadline: over HTTP/2 one that passes ends the
// stream also while nothing is written.
func (s *stream) send(texts ...[]byte) error {
	s.setWriteDeadline(s.w, s.r, writeTimeout)
	for _, text := range texts {
		if _, err := s.w.Write(text); err != nil {
			return err
		}
	}
	control := http.NewResponseController(s.w)
	if err := control.Flush(); err != nil {
		return err
	}
	if err := control.SetWriteDeadline(time.Time{}); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end says why there is no more, to whoever looks at the bytes.
func (s *stream) end(ctx context.Context, err error) {
	why := ": this replica is shutting down; connect again\n\n"
	if s.stopped.Err() == nil {
		if ctx.Err() != nil {
			return // The client is gone.
		}
		e := refusalOf(err)
		s.logRefusal(s.r, e, err)
		why = ": this replica cannot go on; connect again\n\n"
		if refusals[e.Code].status == http.StatusUnauthorized {
			why = ": " + string(e.Code) + "; connect again with a key that is good\n\n"
		}
	}
	if err := s.send([]byte(why)); err != nil {
		s.log.DebugContext(ctx, "the end of a stream was not written", "request_id", requestID(s.r), "error", err)
	}
}
