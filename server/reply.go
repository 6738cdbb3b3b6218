package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// A reply is what a call that succeeded answers. It is made when all is known
// and written at once, so that what it says is left of a lease is so.
type reply struct {
	status int
	body   any    // of a type of openapi.yaml; nil: none
	next   string // the cursor of the next page; empty: there is none
	tag    string // the ETag; empty: there is none
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func noContent() reply { return reply{status: http.StatusNoContent} }

// granted tells a new lease from one that an earlier call had got.
func granted(g lock.Grant) reply {
	if g.Replayed {
		return ok(leaseOf(g))
	}
	return reply{status: http.StatusCreated, body: leaseOf(g)}
}

// reply tells of the lock, unless the caller has seen it as it is.
func (s ifNoneMatch) reply(l lock.Lock) reply {
	r := reply{status: http.StatusNotModified, tag: etagOf(l)}
	if !s.has(l.Version()) {
		r.status, r.body = http.StatusOK, lockOf(l)
	}
	return r
}

// before returns r as a page that another follows, unless there is no cursor.
func (r reply) before(cursor string) reply {
	r.next = cursor
	return r
}

// shortAnswer is the greatest size, in bytes, of answers of which net/http says the length by
// itself. One header less keeps its map small.
const shortAnswer = 1 << 10

// redirectTo sends a browser on.
func redirectTo(address string) http.HandlerFunc {
	return http.RedirectHandler(address, http.StatusTemporaryRedirect).ServeHTTP
}

// answer writes what do replies, or the problem that its error is. The context of do
// leaves the Service its time.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, do func(context.Context) (reply, error)) {
	s.answerLate(w, r, func() (reply, error) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		return do(ctx)
	})
}

// answerLate is answer for a call that may wait, and sees to its time itself.
func (s *Server) answerLate(w http.ResponseWriter, r *http.Request, do func() (reply, error)) {
	out, err := do()
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if out.next != "" {
		w.Header().Set("Link", nextLink(r.URL, out.next))
	}
	if out.tag != "" {
		w.Header().Set("ETag", out.tag)
	}
	if out.body == nil {
		w.WriteHeader(out.status)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	s.write(w, r, out.status, out.body)
}

// nextLink returns the same question for the page that cursor begins.
func nextLink(u *url.URL, cursor string) string {
	q := u.Query()
	q.Set("cursor", cursor)
	return "<" + u.Path + "?" + q.Encode() + `>; rel="next"`
}

// write sends body as JSON.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	s.send(w, r, status, encoded(body))
}

// encoded returns body as JSON. What there is much of needs no reflection.
func encoded(body any) []byte {
	switch body := body.(type) {
	case openapi.Lease:
		return append(appendLease(make([]byte, 0, usualLease+len(body.Metadata)), body), '\n')
	case told:
		return append(body.appendJSON(nil), '\n')
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		panic(err) // A type of openapi.yaml that cannot be written: recovered makes it a problem.
	}
	return text.Bytes()
}

// writeText sends a text that changes with the binary only.
func (s *Server) writeText(w http.ResponseWriter, r *http.Request, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "max-age=60")
	s.send(w, r, http.StatusOK, text)
}

// send writes the answer. A client that is gone by now is worth no more than a
// line in the log: whoever gets no answer sends again.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	if len(text) > shortAnswer {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		s.log.DebugContext(r.Context(), "the answer was not written", "request_id", requestID(r), "error", err)
	}
}
