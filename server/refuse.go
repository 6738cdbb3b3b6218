package server

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// The codes of HTTP itself, beside those of the domain.
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

// refuse answers with the problem that err is. An error that is no *lock.Error is logged, and answered as internal
// without its text.
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

// problemTo returns the problem document for e, made of err, as an answer to r.
func problemTo(r *http.Request, e *lock.Error, err error) wire.Problem {
	p := wire.ProblemOf(e)
	p.Status = refusals[e.Code].status
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	p.RequestID, p.Pointer = requestID(r), pointerTo(e, r, err)
	return p
}

// logRefusal logs the service's faults at Error or Warn, and the callers' at Debug. The cause is for operators and
// appears in the log only.
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
