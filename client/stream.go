package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const contentStream = "text/event-stream"

// maxStreamLine is the greatest length of a line of a stream, in bytes. An event is one line.
const maxStreamLine = 1 << 20

// A Stream is a connection on which the service sends events as they happen. It ends
// with its context, when the service stops, and when the connection breaks. To go on
// without a loss and without a repetition, open another one with the Cursor of this
// one, at this service or another replica of it. A Stream is not safe for concurrent
// use.
type Stream struct {
	cancel context.CancelFunc
	res    *http.Response
	lines  *bufio.Scanner
	cursor string
}

// Stream opens a stream of the events of q. It begins after q.Cursor; after all that
// has happened if there is none. Limit and Wait are not used. It returns once the
// service has accepted the request. A Timeout of the HTTP client ends a stream, too.
// Close the stream in the end.
func (c *Client) Stream(ctx context.Context, q paddock.EventQuery) (*Stream, error) {
	r := request{path: "/v1/events/stream" + wire.EventQueryString(paddock.EventQuery{Name: q.Name, Prefix: q.Prefix})}
	if q.Cursor != paddock.CursorNow {
		r.header = [2]string{"Last-Event-ID", q.Cursor}
	}
	ctx, cancel := context.WithCancel(ctx)
	traced, trace := traced(ctx)
	res, err := c.send(traced, r, nil)
	if err != nil {
		cancel()
		return nil, lost(false, trace, err)
	}
	if isPaddock(res) && res.StatusCode == http.StatusOK && mediaType(res) == contentStream {
		s := &Stream{cancel: cancel, res: res, lines: bufio.NewScanner(res.Body), cursor: q.Cursor}
		s.lines.Buffer(nil, maxStreamLine)
		return s, nil
	}
	defer cancel()
	text, err := read(res, maxResponse)
	switch {
	case err != nil:
		return nil, lost(false, trace, err)
	case !isPaddock(res), res.StatusCode == http.StatusOK:
		return nil, notPaddock(false, res, errors.New("the answer is not a stream of events"))
	}
	return nil, refusal(false, res, text)
}

// Next returns what the service sends next: a page with one event, or with none. On a page without
// an event Gap reports that events before the next one are missing: they were pruned, were lost in
// a fail-over or a restore, or were more than the service had time to send, see paddock.Page;
// Unreadable is a row that cannot be read, whose events are left out; otherwise Next has moved on,
// past events of other locks. Comments are not returned. An error ends the stream; it is a
// *lock.Error with the code ErrUnavailable.
func (s *Stream) Next() (paddock.Page[lock.Event], error) {
	name, data, moved := "", "", false
	for s.lines.Scan() {
		line := s.lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && (data != "" || moved):
			return s.page(name, data)
		case line == "":
			name = ""
		case field == "id":
			moved = moved || value != s.cursor
			s.cursor = value
		case field == "event":
			name = value
		case field == "data":
			data += value
		}
	}
	err := s.lines.Err()
	if err == nil {
		err = errors.New("the service has ended the stream")
	}
	return paddock.Page[lock.Event]{}, &lock.Error{Code: lock.ErrUnavailable, Cause: err,
		Detail: "The stream of events has ended. Open another one with the cursor of this one."}
}

// page returns the page of a message.
func (s *Stream) page(name, data string) (paddock.Page[lock.Event], error) {
	page := paddock.Page[lock.Event]{Next: s.cursor, Gap: name == "gap"}
	if data == "" || name == "gap" || name == "sync" {
		return page, nil
	}
	var e api.Event
	var bad api.Unreadable
	into := any(&e)
	if name == "unreadable" {
		into = &bad
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return page, &lock.Error{Code: lock.ErrUnavailable, Cause: fmt.Errorf("event %q: %w", name, err),
			Detail: "The stream of events holds one that cannot be read. Open another one, or read pages of events."}
	}
	if name == "unreadable" {
		page.Unreadable = []paddock.Unreadable{wire.ToUnreadable(bad)}
	} else {
		page.Items = []lock.Event{wire.ToEvent(e)}
	}
	return page, nil
}

// Cursor returns the cursor after all that Next has returned. It is that of the query
// until the service has sent another one.
func (s *Stream) Cursor() string { return s.cursor }

// Close ends the stream. It may be called while Next runs, which then returns an error.
func (s *Stream) Close() error {
	s.cancel()
	return s.res.Body.Close()
}
