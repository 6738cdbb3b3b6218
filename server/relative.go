package server

import (
	"bytes"
	"net/http"
	"slices"
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

// addressAttributes are the attributes of a page that have addresses of this service.
var addressAttributes = [][]byte{[]byte(" href"), []byte(" src"), []byte(" action"), []byte(" data-stream")}

// relativeTo returns the page with root instead of the / with which the addresses of this service begin. In text, quotes
// are escaped.
func relativeTo(root string, page []byte) []byte {
	out := make([]byte, 0, len(page)+len(page)/16)
	for {
		before, after, found := bytes.Cut(page, []byte(`="/`))
		out = append(out, before...)
		if !found {
			return out
		}
		out = append(out, `="`...)
		if slices.ContainsFunc(addressAttributes, func(name []byte) bool { return bytes.HasSuffix(before, name) }) {
			out = append(out, root...)
		} else {
			out = append(out, '/')
		}
		page = after
	}
}

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
		s.send(w.ResponseWriter, r, w.status, relativeTo(w.root, w.page.Bytes()))
	}
}
