package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// A reply is the response to a call that succeeded. It is written as soon as it is made, so that what it says is left
// of a lease holds.
type reply struct {
	status int
	body   any    // a model or a batch; nil: none
	next   string // the cursor of the next page; empty: there is none
	tag    string // the ETag; empty: there is none
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func noContent() reply { return reply{status: http.StatusNoContent} }

// granted returns the reply to an acquire.
func granted(g lock.Grant) reply { return reply{status: grantStatus(g), body: wire.LeaseOf(g)} }

// grantStatus tells a new lease from one that an earlier call was granted.
func grantStatus(g lock.Grant) int {
	if g.Replayed {
		return http.StatusOK
	}
	return http.StatusCreated
}

// withNext returns r with a link to the next page, unless there is no cursor.
func (r reply) withNext(cursor string) reply {
	r.next = cursor
	return r
}

// autoLengthSize is the greatest size, in bytes, of bodies for which net/http sets Content-Length by itself. One header
// less keeps the map small.
const autoLengthSize = 1 << 10

// redirectTo redirects a browser.
func redirectTo(address string) http.HandlerFunc {
	return http.RedirectHandler(address, http.StatusTemporaryRedirect).ServeHTTP
}

// answer writes the reply of do, or its error as a problem. The context of do has the request timeout.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, do func(context.Context) (reply, error)) {
	s.answerLate(w, r, func() (reply, error) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		return do(ctx)
	})
}

// answerLate is answer for a call that may wait and that sets its own timeout.
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

// nextLink returns the Link header for the page at cursor, with the other parameters of u.
func nextLink(u *url.URL, cursor string) string {
	q := u.Query()
	q.Set("cursor", cursor)
	return "<" + u.Path + "?" + q.Encode() + `>; rel="next"`
}

// write sends body as JSON.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	s.send(w, r, status, encoded(body))
}

// encoded returns body as one line of JSON.
func encoded(body any) []byte {
	if b, is := body.(batch); is {
		return b.encode()
	}
	text, err := wire.Encode(body)
	if err != nil {
		panic(err) // no instant of the database fails; withRecovery turns this into a problem
	}
	return text
}

// writeText sends a text that only a new binary changes.
func (s *Server) writeText(w http.ResponseWriter, r *http.Request, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "max-age=60")
	s.send(w, r, http.StatusOK, text)
}

// send writes the response. A write error is logged at debug level only: the client is gone, and retries if it wants.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	if len(text) > autoLengthSize {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		s.log.DebugContext(r.Context(), "the answer was not written", "request_id", requestID(r), "error", err)
	}
}
