package web

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// parsePages returns the templates. Those named after a page write all of it.
func parsePages(a assets) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset":   a.address,
		"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock":   func(t time.Time) string { return t.UTC().Format(time.DateTime) },
		"levels":  levels,
	}).ParseFS(templateFiles, "templates/*.gohtml"))
}

// levels returns a lock's name in pieces, behind each of which a line may break.
func levels(name string) []string { return strings.SplitAfter(name, ":") }

// show sends the page, or nothing of it: a template that fails half way must not
// look like a page that is whole.
func (u *ui) show(w http.ResponseWriter, r *http.Request, status int, page string, data any) {
	var body bytes.Buffer
	if err := u.pages.ExecuteTemplate(&body, page, data); err != nil {
		u.log.ErrorContext(r.Context(), "A page could not be written.", slog.String("page", page), slog.Any("error", err))
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := body.WriteTo(w); err != nil {
		u.log.DebugContext(r.Context(), "The reader of a page has gone.", slog.Any("error", err))
	}
}
