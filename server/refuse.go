package server

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// refuse answers with the problem that err is. What is not a refusal of the
// domain is logged, and shown as internal without a word of it.
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

// problemTo returns the problem that e, made of err, is to whoever sent the request.
func problemTo(r *http.Request, e *lock.Error, err error) wire.Problem {
	p := wire.ProblemOf(e)
	p.Status = refusals[e.Code].status
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	p.RequestID, p.Pointer = requestID(r), pointerTo(e, r, err)
	return p
}

// logRefusal logs a fault of the service, and at debug level what callers get
// wrong. The cause is for operators and appears nowhere else.
func (s *Server) logRefusal(r *http.Request, e *lock.Error, err error) {
	level := slog.LevelDebug
	switch refusals[e.Code].status {
	case http.StatusInternalServerError:
		level = slog.LevelError
	case http.StatusServiceUnavailable:
		level = slog.LevelWarn
	}
	if clientContext(r).Err() != nil && level == slog.LevelWarn {
		level = slog.LevelDebug // its client is gone, which is why it was not answered
	}
	attrs := []slog.Attr{
		slog.String("request_id", requestID(r)), slog.String("code", string(e.Code)), slog.Any("error", err),
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.Any("cause", e.Cause))
	}
	s.log.LogAttrs(r.Context(), level, "refused", attrs...)
}
