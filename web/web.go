package web

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/paddock-lock/paddock"
)

// Options configure the page.
type Options struct {
	Locks paddock.Service
	// Overview returns the counts over all locks. It must not block. Nil: the list begins without them.
	Overview func() Overview
	// Cells returns the databases of a service that has several, and CellOf which of them has a lock. Nil: there is one.
	Cells  func(context.Context) []paddock.Cell
	CellOf func(name string) string
	// Paused returns the databases that grant nothing for now, since an epoch has begun. It must be quick while there is
	// none. Nil: no page shows it.
	Paused func() []paddock.DatabaseInfo
	// Info returns how the service is. It must take a few seconds at most. Nil: its page shows nothing.
	Info func(context.Context) paddock.ServiceInfo
	Log  *slog.Logger // nil: nothing is logged
}

// policy allows browsers to load this package's files only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ui handles the requests. It is safe for concurrent use.
type ui struct {
	locks    paddock.Service
	overview func() Overview                      // may be nil
	cells    func(context.Context) []paddock.Cell // may be nil
	cellOf   func(name string) string             // may be nil
	paused   func() []paddock.DatabaseInfo        // may be nil
	info     func(context.Context) paddock.ServiceInfo
	log      *slog.Logger
	pages    *template.Template
	assets   assets

	renderings renderings
}

// New returns the admin page, to be mounted at /ui/ with unstripped paths. It panics only if the embedded files are
// broken.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	u := &ui{locks: o.Locks, overview: o.Overview, cells: o.Cells, cellOf: o.CellOf, paused: o.Paused, info: o.Info, log: o.Log, assets: loadAssets()}
	if u.info == nil {
		u.info = func(context.Context) paddock.ServiceInfo { return paddock.ServiceInfo{} }
	}
	u.pages = parsePages(u.assets)
	return withSecurityHeaders(u.sameOrigin(u.routes()))
}

// A route is a handler with its pattern of [http.ServeMux].
type route struct {
	pattern string
	answer  func(*ui, http.ResponseWriter, *http.Request)
}

func routes() []route {
	return []route{
		{"GET /ui/{$}", together((*ui).list)},
		{"GET /ui/locks/{name}", together((*ui).lock)},
		{"GET /ui/events", together((*ui).events)},
		{"GET /ui/holder", together((*ui).holder)},
		{"GET /ui/sessions", together((*ui).sessions)},
		{"GET /ui/sessions/{session}", together((*ui).session)},
		{"POST /ui/sessions/{session}", (*ui).revokeSession},
		{"GET /ui/trees", together((*ui).trees)},
		{"POST /ui/trees", (*ui).declareTree},
		{"GET /ui/trees/{root}", together((*ui).tree)},
		{"POST /ui/trees/{root}", (*ui).removeTree},
		{"GET /ui/freezes", together((*ui).freezes)},
		{"POST /ui/freezes", (*ui).freeze},
		{"GET /ui/freezes/{scope}", together((*ui).frozen)},
		{"POST /ui/freezes/{scope}", (*ui).thaw},
		{"GET /ui/rules", (*ui).rules},
		{"GET /ui/service", (*ui).service},
		{"GET /ui/login", (*ui).signIn},
		{"GET /ui/revoke", (*ui).confirm},
		{"POST /ui/revoke", (*ui).revoke},
		{"POST /ui/revocations", (*ui).revokeSeveral},
		{"GET /ui/assets/{version}/{file}", (*ui).asset},
		{"GET /ui/", (*ui).notFound},
	}
}

// Patterns returns the page's routes as patterns of [http.ServeMux], so that a server can test its access rules for
// each of them.
func Patterns() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, r.pattern)
	}
	return all
}

func (u *ui) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes() {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { route.answer(u, w, r) })
	}
	return mux
}

// sameOrigin refuses writes that a browser sends from another site.
func (u *ui) sameOrigin(h http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.refuse(w, r, http.StatusForbidden,
			"This request came from another site, so nothing was done. Open the page here and revoke from there.")
	}))
	return p.Handler(h)
}

// withSecurityHeaders sets the security headers of every answer. The Referrer-Policy is same-origin, not no-referrer:
// with that, browsers would send "Origin: null" with the page's own forms, which over plain HTTP looks like a request
// from another site.
func withSecurityHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}
