package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
)

// docsFiles are those that the page under /docs/ asks for.
var docsFiles = []string{
	"swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png",
}

// mountDocs adds Swagger UI, which reads /openapi.json. All of it is embedded: the
// page asks nothing of anybody else, and its policy would not let it.
func mountDocs(r chi.Router) {
	ui := v5emb.NewHandlerWithConfig(swgui.Config{Title: "Paddock", SwaggerJSON: "/openapi.json", BasePath: "/docs/"})
	policy := docsPolicy(ui)
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		ui.ServeHTTP(w, r)
	}
	r.Get("/docs/", handler)
	for _, file := range docsFiles {
		r.Get("/docs/"+file, handler)
	}
}

// docsPolicy allows what this site serves, and what stands in the page itself by
// its hash.
func docsPolicy(ui http.Handler) string {
	page := bufferedPage{header: http.Header{}}
	ui.ServeHTTP(&page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/docs/"}})
	return "default-src 'none'; script-src 'self'" + hashesOf(inlineScript, page.Bytes()) +
		"; style-src 'self'" + hashesOf(inlineStyle, page.Bytes()) +
		"; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

var (
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	inlineStyle  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
)

func hashesOf(inline *regexp.Regexp, page []byte) string {
	var hashes strings.Builder
	for _, found := range inline.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(found[1])
		hashes.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return hashes.String()
}

// A bufferedPage keeps what a handler writes.
type bufferedPage struct {
	bytes.Buffer
	header http.Header
}

func (p *bufferedPage) Header() http.Header { return p.header }

func (p *bufferedPage) WriteHeader(int) {}
