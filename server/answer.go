package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// jsonType is the media type of bodies.
const jsonType = "application/json"

// jsonTypes are the values of their Content-Type header. They are shared and must not be changed.
var jsonTypes = []string{jsonType}

// A reply is the response to a call that succeeded. Write it at once: a lease in it has the remaining time of when the
// reply was made.
type reply struct {
	status int
	body   any    // a model or a batch; nil: none
	next   string // the cursor of the next page; empty: there is none
	tag    string // the ETag; empty: there is none
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func noContent() reply { return reply{status: http.StatusNoContent} }

// grantReply returns the reply to an acquire of one lock.
func grantReply(g lock.Grant) reply {
	return reply{status: grantStatus(g.Replayed), body: wire.LeaseOf(g)}
}

// setReply returns the reply to an acquire of a set.
func setReply(g lock.Grant) reply {
	return reply{status: grantStatus(g.Replayed), body: wire.LeaseSetOf(g)}
}

// grantStatus returns 201 for a new lease or session, and 200 for one that an earlier call with this id was granted.
func grantStatus(replayed bool) int {
	if replayed {
		return http.StatusOK
	}
	return http.StatusCreated
}

// withNext returns r with a link to the page at cursor. An empty cursor adds none.
func (r reply) withNext(cursor string) reply {
	r.next = cursor
	return r
}

// autoLengthSize is the greatest size, in bytes, of bodies for which net/http sets Content-Length. For these, send
// saves an entry in the header map.
const autoLengthSize = 1 << 10

// redirectTo returns a handler that redirects to address.
func redirectTo(address string) http.HandlerFunc {
	return http.RedirectHandler(address, http.StatusTemporaryRedirect).ServeHTTP
}

// answer writes the reply of do, or its error as a problem. The context of do has the request timeout.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, do func(context.Context) (reply, error)) {
	s.answerUntimed(w, r, func() (reply, error) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		return do(ctx)
	})
}

// answerUntimed is answer without the request timeout. A call that may wait sets its own, see waitContext.
func (s *Server) answerUntimed(w http.ResponseWriter, r *http.Request, do func() (reply, error)) {
	out, err := do()
	s.respond(w, r, out, err)
}

// respond writes the reply, or the error as a problem.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, out reply, err error) {
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
	w.Header()["Content-Type"] = jsonTypes
	s.write(w, r, out.status, out.body)
}

// nextLink returns the Link header for the page at cursor, with the other parameters of u. It is relative to u.
func nextLink(u *url.URL, cursor string) string {
	q := u.Query()
	q.Set("cursor", cursor)
	return "<?" + q.Encode() + `>; rel="next"`
}

// write sends body as JSON.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	lease, is := body.(api.Lease)
	if !is {
		s.send(w, r, status, encoded(body))
		return
	}
	buffer := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(buffer)
	buffer.Reset()
	s.send(w, r, status, append(wire.AppendLease(buffer.AvailableBuffer(), lease), '\n'))
}

// encoded returns body as one line of JSON.
func encoded(body any) []byte {
	if b, is := body.(interface{ encode() []byte }); is {
		return b.encode()
	}
	text, err := wire.Encode(body)
	if err != nil {
		panic(err) // cannot happen: only years after 9999 fail, and the database has none
	}
	return text
}

// writeText sends a text that clients may cache: it changes only with the binary.
func (s *Server) writeText(w http.ResponseWriter, r *http.Request, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "max-age=60")
	s.send(w, r, http.StatusOK, text)
}

// send writes the response. It logs a write error at Debug only, because it means that the client has disconnected.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	if len(text) > autoLengthSize {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		s.log.DebugContext(r.Context(), "the answer was not written", "request_id", requestID(r), "error", err)
	}
}

// The codes of this package, in addition to those of package lock.
const (
	// ErrNoRoute: there is nothing at this path.
	ErrNoRoute lock.Code = "no_route"
	// ErrMethodNotAllowed: the path has other methods, listed in Allow.
	ErrMethodNotAllowed lock.Code = "method_not_allowed"
	// ErrCrossOrigin: a browser sent a write from another site.
	ErrCrossOrigin lock.Code = "cross_origin"
	// ErrBodyTooLarge: the body has more than MaxBodySize bytes.
	ErrBodyTooLarge lock.Code = "body_too_large"
	// ErrHeaderTooLarge: the header has more bytes than allowed.
	ErrHeaderTooLarge lock.Code = "header_too_large"
	// ErrUnsupportedMediaType: the body is not application/json, or has a Content-Encoding.
	ErrUnsupportedMediaType lock.Code = "unsupported_media_type"
)

// defaultRetryAfter is the Retry-After of a 503 or a 429 whose error has none.
const defaultRetryAfter = time.Second

// A refusal is the status of a Code, and the default detail.
type refusal struct {
	status int
	detail string
}

// refusals is the only place that maps a Code to a status.
var refusals = map[lock.Code]refusal{
	lock.ErrInvalid:          {400, "The request does not match /openapi.yaml. Fix it before sending it again."},
	lock.ErrHeld:             {409, "The lock is held. Retry later."},
	lock.ErrAlreadyDone:      {409, "The work of the lock is done for now. Retry when the lock opens."},
	lock.ErrFrozen:           {409, "An operator has frozen the lock. Retry when the freeze has ended; existing leases stay valid."},
	lock.ErrLeaseLost:        {409, "The lease has ended. Stop the work; to go on, acquire with a new lease_id."},
	lock.ErrSessionLost:      {409, "The session has ended, and its leases with it. Stop the work; then open a new session."},
	lock.ErrSessionIDInUse:   {409, "The session_id belongs to another session. Choose a new random UUID."},
	lock.ErrLeaseIDInUse:     {409, "The lease_id belongs to another lease or place. Choose a new random UUID."},
	lock.ErrLeaseInSet:       {409, "The lease is one of several that were acquired together. Renew or release all of them."},
	lock.ErrDeadlock:         {409, "The call waited in a circle of calls that wait for each other. Release what you hold, and begin again."},
	lock.ErrCapacityMismatch: {409, "Permits of another capacity are held or queued. Use that capacity, or wait for their release."},
	lock.ErrTreeBusy:         {409, "A lock of the tree is held or waited for. Release the locks of the tree, and try again."},
	lock.ErrTreeOverlaps:     {409, "Trees cannot overlap. Use names in one tree, or remove the other one first."},
	lock.ErrTooManyLeases:    {429, "The session has reached its limit of leases and places, or the API key that of a rule. Release some."},
	lock.ErrTooManyWaiters:   {429, "The limit on waiting calls is reached. Retry later."},
	lock.ErrTokenMismatch:    {409, "That token does not hold the lock. Read the lock again."},
	lock.ErrVersionMismatch:  {409, "The resource has another version. Read it again before writing."},
	lock.ErrStaleToken:       {412, "A greater token has been granted or seen. Stop the work."},
	lock.ErrUnknownToken:     {412, "The token was never granted for this lock. Send the one that acquire returned."},
	lock.ErrNotFound:         {404, "There is no fenced value under this key, or no session or freeze of this name."},
	lock.ErrKeyMissing:       {401, "This service requires an API key. Send it as Authorization: Bearer KEY."},
	lock.ErrKeyInvalid:       {401, "Unknown API key: mistyped or revoked. Ask your operator for a new one."},
	lock.ErrKeyExpired:       {401, "The API key has expired. Ask your operator for a new one."},
	lock.ErrRoleMissing:      {403, "The API key's role does not allow this. Use a key with a higher role."},
	lock.ErrNameNotAllowed:   {403, "The API key does not cover this name. Use a key whose prefixes do."},
	lock.ErrRateLimited:      {429, "Rate limit of the API key exceeded. Retry after Retry-After."},
	lock.ErrUnavailable:      {503, "The service is unavailable. Nothing was changed; retry."},
	lock.ErrUnknownOutcome:   {503, "The outcome is unknown. Send the same call again to find out."},
	lock.ErrInternal:         {500, "Internal error. The log of the service has the cause under this request_id."},
	ErrNoRoute:               {404, "There is nothing at this path. /docs/ lists the paths."},
	ErrMethodNotAllowed:      {405, "This path does not have this method. Allow lists its methods."},
	ErrCrossOrigin:           {403, "A browser sent this from another site. Send it from the service's own origin, or allow the page's origin with --cors-origin."},
	ErrBodyTooLarge:          {413, "The body has more than " + strconv.Itoa(MaxBodySize) + " bytes. Send less."},
	ErrHeaderTooLarge: {431, "The header has more than " + strconv.Itoa(maxHeaderSize) +
		" bytes. Send a shorter query and fewer or shorter header fields."},
	ErrUnsupportedMediaType: {415, "The body must be application/json. Send that Content-Type, as curl --json does."},
}

// refusalOf returns err as a *lock.Error with a known Code, a detail, and a RetryAfter if the status needs one. An
// error without a known Code becomes ErrInternal.
func refusalOf(err error) *lock.Error {
	e := lock.Error{Code: lock.ErrInternal}
	if found := (*lock.Error)(nil); errors.As(err, &found) {
		e = *found
	} else if code := lock.Code(""); errors.As(err, &code) {
		e.Code = code
	}
	if _, known := refusals[e.Code]; !known {
		e = lock.Error{Code: lock.ErrInternal, Cause: e.Cause}
	}
	known := refusals[e.Code]
	if e.Detail == "" || e.Code == lock.ErrInternal {
		e.Detail = known.detail
	}
	if e.RetryAfter <= 0 && (known.status == http.StatusServiceUnavailable || known.status == http.StatusTooManyRequests) {
		e.RetryAfter = defaultRetryAfter
	}
	return &e
}

// A parameterError is an error about a parameter of the path or the query.
type parameterError struct{ error }

func (e parameterError) Unwrap() error { return e.error }

// A bodyError is an error about the body of a call that has none.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// pointerTo returns the location of invalid input: the name of a parameter, or a JSON Pointer into the body, which is
// "" for the whole body. It returns nil for other errors.
func pointerTo(e *lock.Error, r *http.Request, err error) *string {
	inBody := r.Method == http.MethodPost || r.Method == http.MethodPut
	switch {
	case errors.As(err, new(parameterError)), e.Field != "" && isInPath(r, e.Field):
		inBody = false
	case errors.As(err, new(bodyError)):
		inBody = true
	}
	switch {
	case e.Code != lock.ErrInvalid, !inBody && e.Field == "":
		return nil
	case !inBody:
		return &e.Field
	case e.Field == "":
		return new("")
	}
	return new("/" + e.Field)
}

// isInPath reports whether the path of the request has the parameter.
func isInPath(r *http.Request, parameter string) bool {
	route := chi.RouteContext(r.Context())
	return route != nil && slices.Contains(route.URLParams.Keys, parameter)
}

// refuse logs err and answers with its problem document. An error without a lock.Code becomes an internal error, and
// its text is only logged.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := refusalOf(err)
	s.logRefusal(r, e, err)
	p := problemTo(r, e, err)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge(e.Code))
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(wire.RoundUp(e.RetryAfter, time.Second), 10))
	}
	s.write(w, r, p.Status, p)
}

// challenge returns the WWW-Authenticate header for a 401 with this code.
func challenge(code lock.Code) string {
	if code == lock.ErrKeyMissing {
		return `Bearer realm="paddock"`
	}
	return `Bearer realm="paddock", error="invalid_token"`
}

// problemTo returns the problem document for r. e is refusalOf(err).
func problemTo(r *http.Request, e *lock.Error, err error) api.Problem {
	p := wire.ProblemOf(e)
	p.Status = refusals[e.Code].status
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	p.RequestID, p.Pointer = requestID(r), pointerTo(e, r, err)
	return p
}

// logRefusal logs errors of the service at Error or Warn, and errors of clients at Debug. The cause is for operators
// and appears in the log only.
func (s *Server) logRefusal(r *http.Request, e *lock.Error, err error) {
	level := slog.LevelDebug
	switch refusals[e.Code].status {
	case http.StatusInternalServerError:
		level = slog.LevelError
	case http.StatusServiceUnavailable:
		level = slog.LevelWarn
	}
	if clientContext(r).Err() != nil && level == slog.LevelWarn {
		level = slog.LevelDebug // canceled because the client disconnected
	}
	attrs := []slog.Attr{
		slog.String("request_id", requestID(r)), slog.String("code", string(e.Code)), slog.Any("error", err),
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.Any("cause", e.Cause))
	}
	s.log.LogAttrs(r.Context(), level, "request refused", attrs...)
}
