package web

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// parsePages returns the templates. Those named after a page write all of it.
func parsePages(assets map[string]asset) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset":   func(name string) string { return "/ui/assets/" + name + "?v=" + assets[name].hash },
		"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock":   func(t time.Time) string { return t.UTC().Format(time.DateTime) },
	}).ParseFS(templateFiles, "templates/*.gohtml"))
}

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
