package web

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

//go:embed templates
var templateFiles embed.FS

// parsePages returns the templates. A template named after a page renders all of it.
func parsePages(a assets) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset":     a.address,
		"instant":   func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock":     func(t time.Time) string { return t.UTC().Format(time.DateTime) },
		"timeOfDay": func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
		"levels":    levels,
		"holderURL": holderPath,
	}).ParseFS(templateFiles, "templates/*.gohtml"))
}

// levels splits a lock's name where a line may break.
func levels(name string) []string { return strings.SplitAfter(name, ":") }

// A frame is what all pages have.
type frame struct {
	Title  string
	Reader reader
	Path   string // of the request
	Pauses []pause
}

func (u *ui) frameOf(r *http.Request, title string) frame {
	return frame{Title: title, Reader: readerOf(r), Path: r.URL.Path, Pauses: u.pauses(r)}
}

// A section is a link at the top of all pages.
type section struct {
	Name, URL string
	Here      bool // it is the page
}

// Sections returns the links at the top of the page.
func (f frame) Sections() []section {
	all := []section{{Name: "Locks", URL: root}, {Name: "Events", URL: eventsRoot}}
	if f.Reader.MayListSessions() {
		all = append(all, section{Name: "Sessions", URL: sessionsRoot})
	}
	all = append(all, section{Name: "Trees", URL: treesRoot}, section{Name: "Freezes", URL: freezesRoot}, section{Name: "Rules", URL: rulesRoot})
	if f.Reader.MaySeeService() {
		all = append(all, section{Name: "Service", URL: serviceRoot})
	}
	all = append(all, section{Name: "API", URL: "/docs/"})
	for i := range all {
		all[i].Here = all[i].URL == f.Path
	}
	return all
}

// show sends the whole page or none of it: a template that fails halfway must not look like a complete page.
func (u *ui) show(w http.ResponseWriter, r *http.Request, status int, page string, data any) {
	var body bytes.Buffer
	if err := u.pages.ExecuteTemplate(&body, page, data); err != nil {
		u.log.ErrorContext(r.Context(), "cannot render page", slog.String("page", page), slog.Any("error", err))
		http.Error(w, "Internal error: cannot render the page.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := body.WriteTo(w); err != nil {
		u.log.DebugContext(r.Context(), "cannot write page", slog.Any("error", err))
	}
}

// statuses are the statuses of pages that show a problem. Other codes are internal errors.
var statuses = map[lock.Code]int{
	lock.ErrInvalid:        http.StatusBadRequest,
	lock.ErrKeyMissing:     http.StatusUnauthorized,
	lock.ErrKeyInvalid:     http.StatusUnauthorized,
	lock.ErrKeyExpired:     http.StatusUnauthorized,
	lock.ErrRoleMissing:    http.StatusForbidden,
	lock.ErrNameNotAllowed: http.StatusForbidden,
	lock.ErrNotFound:       http.StatusNotFound,
	lock.ErrTokenMismatch:  http.StatusConflict,
	lock.ErrSessionLost:    http.StatusConflict,
	lock.ErrTreeBusy:       http.StatusConflict,
	lock.ErrTreeOverlaps:   http.StatusConflict,
	lock.ErrTooManyWaiters: http.StatusTooManyRequests,
	lock.ErrRateLimited:    http.StatusTooManyRequests,
	lock.ErrUnavailable:    http.StatusServiceUnavailable,
	lock.ErrUnknownOutcome: http.StatusServiceUnavailable,
}

// defaultMessages are for errors without a detail.
var defaultMessages = map[int]string{
	http.StatusBadRequest:          "The request is not valid.",
	http.StatusUnauthorized:        "Your API key is no longer valid. Sign in again.",
	http.StatusForbidden:           "Your API key does not allow this. Sign in with another.",
	http.StatusNotFound:            "There is no such lock or session.",
	http.StatusTooManyRequests:     "Too many requests. Try again in a moment.",
	http.StatusConflict:            "The lock or session has changed. Reload the page.",
	http.StatusServiceUnavailable:  "The service is unavailable. Try again in a moment.",
	http.StatusInternalServerError: "The service has failed; its log has the details. Try again.",
}

// problem returns the status and message with which a page shows err. It logs errors of the service.
func (u *ui) problem(r *http.Request, err error) (int, string) {
	var code lock.Code
	errors.As(err, &code)
	status, known := statuses[code]
	if !known {
		status = http.StatusInternalServerError
	}
	message := defaultMessages[status]
	var e *lock.Error
	if errors.As(err, &e) && e.Detail != "" {
		message = e.Detail
	}
	if status >= http.StatusInternalServerError {
		u.log.ErrorContext(r.Context(), "page failed", slog.String("path", r.URL.Path),
			slog.Any("error", err), slog.Any("cause", cause(e)))
	}
	return status, message
}

func cause(e *lock.Error) error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// A problemPage shows only a problem.
type problemPage struct {
	frame
	Problem string
	Back    string // the URL of the list
}

func (u *ui) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	p := problemPage{frame: u.frameOf(r, http.StatusText(status)), Problem: message, Back: root}
	u.show(w, r, status, "problem", p)
}

func (u *ui) notFound(w http.ResponseWriter, r *http.Request) {
	u.refuse(w, r, http.StatusNotFound, "There is no such page.")
}
