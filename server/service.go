package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// The paths of the health checks.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// livez reports that the process runs. It checks nothing else.
func (s *Server) livez(w http.ResponseWriter, r *http.Request) {
	// A page of another origin may see that there is an answer, which tells it a refusal from an outage.
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	s.answer(w, r, func(_ context.Context) (reply, error) { return ok(api.Health{Status: api.Ok}), nil })
}

// readyz reports whether this replica should receive requests.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		if s.draining.Load() {
			return reply{}, &lock.Error{Code: lock.ErrUnavailable,
				Detail: "This replica is shutting down. Use another replica."}
		}
		if err := s.ready.check(ctx); err != nil {
			if refusal := (*lock.Error)(nil); errors.As(err, &refusal) {
				return reply{}, refusal
			}
			return reply{}, &lock.Error{Code: lock.ErrUnavailable, Cause: err,
				Detail: unreadyBecause(err) + " Its log has more under this request_id. Use another replica."}
		}
		return ok(api.Health{Status: api.Ok, CellsAway: s.cellsAway(ctx)}), nil
	})
}

// unreadyBecause says why the replica is not ready, with nothing of the error that may be a secret: /readyz needs no key.
func unreadyBecause(err error) string {
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "This replica is not ready: its database does not answer in time."
	case errors.As(err, &operation) && operation.Op == "dial":
		return "This replica is not ready: its database cannot be reached."
	}
	return "This replica is not ready."
}

// readinessTTL is how long a result is reused. It limits the rate of probes, because /readyz needs no key.
const readinessTTL = time.Second

// A readiness caches whether this replica should receive requests. One probe runs at a time; concurrent callers wait
// for its result.
type readiness struct {
	probe   func(context.Context) error
	timeout time.Duration // of a probe

	busy      chan struct{} // a semaphore; its holder may use the fields below
	checkedAt time.Time     // zero: never probed
	err       error
}

// newReadiness returns a readiness with this probe. A nil probe is always ready.
func newReadiness(probe func(context.Context) error, timeout time.Duration) *readiness {
	if probe == nil {
		probe = func(context.Context) error { return nil }
	}
	return &readiness{probe: probe, timeout: timeout, busy: make(chan struct{}, 1)}
}

// check returns an error if this replica should receive no requests. A probe continues when its caller disconnects,
// because other callers wait for its result.
func (r *readiness) check(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.checkedAt.IsZero() && time.Since(r.checkedAt) < readinessTTL {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
	defer cancel()
	r.err = r.probe(ctx)
	r.checkedAt = time.Now()
	return r.err
}

// getVersion identifies the running binary, and the locks that it serves.
func (s *Server) getVersion(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(_ context.Context) (reply, error) {
		v := s.version
		return ok(api.Version{Version: v.Version, Commit: wire.UnlessZero(v.Commit), Go: v.Go, Schema: wire.UnlessZero(v.Schema)}), nil
	})
}

// openapiYAML returns openapi.yaml unchanged.
func (s *Server) openapiYAML(w http.ResponseWriter, r *http.Request) {
	s.writeText(w, r, "application/yaml", paddock.OpenAPI)
}

// openapiJSON returns openapi.yaml as JSON.
func (s *Server) openapiJSON(w http.ResponseWriter, r *http.Request) {
	s.writeText(w, r, "application/json", documentJSON())
}

// docsFiles are the files that the page under /docs/ loads.
var docsFiles = []string{
	"swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js", "favicon-16x16.png", "favicon-32x32.png",
}

// mountDocs adds Swagger UI, which loads openapi.json. All files are embedded, so the policy forbids other origins.
func mountDocs(r chi.Router) {
	ui := v5emb.NewHandlerWithConfig(swgui.Config{Title: "Paddock", SwaggerJSON: "../openapi.json", BasePath: "/docs/"})
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

// docsPolicy returns a policy that allows files of this origin, and the page's inline scripts and styles by hash.
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

// A bufferedPage is an http.ResponseWriter that keeps the body.
type bufferedPage struct {
	bytes.Buffer
	header http.Header
}

func (p *bufferedPage) Header() http.Header { return p.header }

func (p *bufferedPage) WriteHeader(int) {}

// getService returns how the service is.
func (s *Server) getService(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) { return ok(wire.ServiceInfoOf(s.info(ctx))), nil })
}
