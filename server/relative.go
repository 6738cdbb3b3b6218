package server

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// withRelativeAddresses makes the addresses of pages and their redirects relative to the request. So a reverse proxy
// may serve everything under a prefix that it removes, such as /paddock/, of which this service knows nothing.
func (s *Server) withRelativeAddresses(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isPage(r) {
			next.ServeHTTP(w, r)
			return
		}
		relative := &relativeWriter{ResponseWriter: w, root: rootFrom(r)}
		next.ServeHTTP(relative, r)
		relative.finish(s, r)
	})
}

// rootFrom returns the address of / relative to the request: ../ for /ui/ and for /ui/sessions.
func rootFrom(r *http.Request) string {
	levels := strings.Count(r.URL.EscapedPath(), "/") - 1
	if levels < 1 {
		return "./"
	}
	return strings.Repeat("../", levels)
}

// A relativeWriter writes an answer with addresses relative to the request. It keeps an HTML page until finish.
type relativeWriter struct {
	http.ResponseWriter
	root   string
	status int          // zero until the answer begins
	page   bytes.Buffer // if the answer is HTML
	isHTML bool
}

// pageAddress matches the beginning of an address of this service in an attribute. In text, quotes are escaped.
var pageAddress = regexp.MustCompile(` (href|src|action|data-stream)="/`)

// WriteHeader makes the addresses in the header relative.
func (w *relativeWriter) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	h := w.Header()
	if to, local := strings.CutPrefix(h.Get("Location"), "/"); local {
		h.Set("Location", w.root+to)
	}
	if refresh := h.Get("Refresh"); refresh != "" {
		h.Set("Refresh", strings.Replace(refresh, "url=/", "url="+w.root, 1))
	}
	if w.isHTML = strings.HasPrefix(h.Get("Content-Type"), "text/html"); !w.isHTML {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *relativeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.isHTML {
		return w.page.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *relativeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish sends the page, if the answer is one.
func (w *relativeWriter) finish(s *Server, r *http.Request) {
	if w.isHTML {
		w.Header().Del("Content-Length")
		s.send(w.ResponseWriter, r, w.status, pageAddress.ReplaceAll(w.page.Bytes(), []byte(` $1="`+w.root)))
	}
}
