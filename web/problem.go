package web

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// statuses are those of the pages that show a problem. The codes not named here
// are faults, or cannot be the answer to what the page asks for.
var statuses = map[lock.Code]int{
	lock.ErrInvalid:        http.StatusBadRequest,
	lock.ErrKeyMissing:     http.StatusUnauthorized,
	lock.ErrKeyInvalid:     http.StatusUnauthorized,
	lock.ErrKeyExpired:     http.StatusUnauthorized,
	lock.ErrRoleMissing:    http.StatusForbidden,
	lock.ErrNameNotAllowed: http.StatusForbidden,
	lock.ErrTokenMismatch:  http.StatusConflict,
	lock.ErrTooManyWaiters: http.StatusTooManyRequests,
	lock.ErrRateLimited:    http.StatusTooManyRequests,
	lock.ErrUnavailable:    http.StatusServiceUnavailable,
	lock.ErrUnknownOutcome: http.StatusServiceUnavailable,
}

// defaultMessages are the words for errors that bring none of their own.
var defaultMessages = map[int]string{
	http.StatusBadRequest:          "The request is not valid.",
	http.StatusUnauthorized:        "Your API key is not good any more. Sign in again.",
	http.StatusForbidden:           "Your API key does not allow this. Sign in with another.",
	http.StatusTooManyRequests:     "This was asked for too often. Try again in a moment.",
	http.StatusConflict:            "The lock has changed meanwhile. Look at it again.",
	http.StatusServiceUnavailable:  "The service is not available now. Try again in a moment.",
	http.StatusInternalServerError: "The service has failed; its log says how. Try again.",
}

// problem returns the status and the words in which a page shows err, and logs
// what is the service's fault.
func (u *ui) problem(r *http.Request, err error) (int, string) {
	var code lock.Code
	errors.As(err, &code)
	status, known := statuses[code]
	if !known {
		status = http.StatusInternalServerError
	}
	words := defaultMessages[status]
	var e *lock.Error
	if errors.As(err, &e) && e.Detail != "" {
		words = e.Detail
	}
	if status >= http.StatusInternalServerError {
		u.log.ErrorContext(r.Context(), "A page shows a fault.", slog.String("path", r.URL.Path),
			slog.Any("error", err), slog.Any("cause", cause(e)))
	}
	return status, words
}

func cause(e *lock.Error) error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// A problemPage is a page that has nothing else to show.
type problemPage struct {
	Title   string
	Reader  reader
	Problem string
	Back    string // the address of the locks
}

func (u *ui) refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	u.show(w, r, status, "problem", problemPage{Title: http.StatusText(status), Reader: readerOf(r), Problem: words, Back: root})
}

func (u *ui) notFound(w http.ResponseWriter, r *http.Request) {
	u.refuse(w, r, http.StatusNotFound, "There is no such page.")
}
