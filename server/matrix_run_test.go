package server_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/metrics"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/web"
)

// treeRoot is the root of a tree that swappableService.reset declares.
const treeRoot = "billing:forest"

// frozenScope is a scope that swappableService.reset freezes.
const frozenScope = "billing:frozen:"

// A swappableService is a paddock.Service that each test case replaces.
type swappableService struct{ paddock.Service }

// reset starts a new Service in which billing:a and billing2 are held under tokens 1 and 2, and billing:k was written
// under token 1. The session of sessionID is open, the tree of treeRoot is declared, and frozenScope is frozen.
func (s *swappableService) reset(t testing.TB) {
	t.Helper()
	s.Service = memlock.New().Replica(1)
	for _, a := range []lock.Acquire{{Locks: lock.One("billing:a"), LeaseID: lock.LeaseID(uuid.MustParse(leaseID))}, {Locks: lock.One("billing2")}} {
		a.Holder = "h"
		if _, err := s.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.OpenSession(t.Context(), lock.OpenSession{ID: lock.SessionID(uuid.MustParse(sessionID)), Holder: "h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeclareTree(t.Context(), treeRoot); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Freeze(t.Context(), lock.FreezeRequest{Scope: frozenScope, Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "billing:k", Lock: "billing:a", Token: 1, Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

// serveWithKeys returns a complete service with keys, called without a connection.
func serveWithKeys(t testing.TB) (harness, *server.Server, *swappableService, *keyring) {
	t.Helper()
	s, k := new(swappableService), newKeyring(t)
	s.reset(t)
	locks := access.Guard(s, access.Limits{})
	h := server.New(server.Options{
		Locks: locks, Keys: k.Keyring, UI: web.New(web.Options{Locks: locks}), Attempts: access.NewAttempts(1_000_000, 0),
		Metrics: metrics.New("1.2.3", "abc", "team_b").Handler(),
	})
	client := &http.Client{
		Transport:     contract{t, handlerTransport{h}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return harness{t: t, url: "http://paddock", client: client}, h, s, k
}

// asCaller adds the credentials of the caller in this column.
func (k *keyring) asCaller(r *http.Request, caller string) *http.Request {
	switch caller {
	case "none":
		return r
	case "malformed":
		r.Header.Set("Authorization", "Bearer of good news")
	case "unknown":
		r.Header.Set("Authorization", "Bearer pk_"+k.ids["admin"]+"_"+strings.Repeat("A", 43))
	default:
		k.authorize(r, caller)
	}
	return r
}

func TestEveryRouteForEveryCaller(t *testing.T) {
	t.Parallel()
	s, _, stage, k := serveWithKeys(t)
	for _, row := range matrix {
		method, _, _ := strings.Cut(row.route, " ")
		path := row.path
		if row.route == "" {
			method, path, _ = strings.Cut(row.path, " ")
		}
		words := strings.Fields(row.cells)
		if len(words) != len(callers) {
			t.Errorf("%s has %d cells, want %d", path, len(words), len(callers))
			continue
		}
		for i, caller := range callers {
			t.Run(strings.Join([]string{caller, method, path}, " "), func(t *testing.T) {
				stage.reset(t)
				s.t = t
				r := k.asCaller(s.request(method, path, row.body), caller)
				if strings.HasPrefix(path, "/ui/") {
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				}
				checkCell(t, s.do(r), words[i])
			})
		}
	}
}

// checkCell checks that the answer is the one that the cell demands.
func checkCell(t *testing.T, got answer, word string) {
	t.Helper()
	want := cells[word]
	if status, err := strconv.Atoi(word); err == nil {
		want.status = status
	}
	code, _ := got.body["code"].(string)
	if got.StatusCode != want.status || code != want.code {
		t.Errorf("%d %q, want %d %q: %.300s", got.StatusCode, code, want.status, want.code, got.text)
	}
	challenge := got.Header.Get("WWW-Authenticate")
	if (want.status == http.StatusUnauthorized) != strings.HasPrefix(challenge, "Bearer ") {
		t.Errorf("%d with WWW-Authenticate %q", got.StatusCode, challenge)
	}
}

// patterns returns the router's routes with their methods.
func patterns(t *testing.T, h *server.Server) []string {
	t.Helper()
	var all []string
	err := chi.Walk(h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, method+" "+route)
		return nil
	})
	if err != nil || len(all) < 20 {
		t.Fatalf("%d routes, %v", len(all), err)
	}
	return all
}

func TestTheMatrixHasEveryRoute(t *testing.T) {
	t.Parallel()
	_, h, _, _ := serveWithKeys(t)
	routes := patterns(t, h)
	for _, route := range routes {
		if strings.HasSuffix(route, " /ui/*") {
			continue // TestTheMatrixHasEveryPage checks these
		}
		if !slices.ContainsFunc(matrix, func(row struct{ route, path, body, cells string }) bool { return row.route == route }) {
			t.Errorf("the matrix has no row for %s: add who may use it", route)
		}
	}
	for _, row := range matrix {
		if row.route != "" && !slices.Contains(routes, row.route) {
			t.Errorf("the matrix has %s, the router does not", row.route)
		}
	}
}

// TestTheMatrixHasEveryPage exists because the router has a single route for all pages, /ui/*.
func TestTheMatrixHasEveryPage(t *testing.T) {
	t.Parallel()
	pages, seen := http.NewServeMux(), map[string]bool{}
	for _, pattern := range web.Patterns() {
		pages.Handle(pattern, http.NotFoundHandler())
	}
	for _, row := range matrix {
		if method, _, _ := strings.Cut(row.route, " "); strings.HasPrefix(row.path, "/ui/") {
			_, pattern := pages.Handler(httptest.NewRequest(method, row.path, nil))
			seen[pattern] = true
		}
	}
	for _, pattern := range web.Patterns() {
		if !seen[pattern] {
			t.Errorf("the matrix has no row for %s: add who may use it", pattern)
		}
	}
}

// TestNothingIsOpenByDefault calls every route, with every method, without a key.
func TestNothingIsOpenByDefault(t *testing.T) {
	t.Parallel()
	s, h, _, _ := serveWithKeys(t)
	open := []string{"/livez", "/readyz", "/ui/login", "/ui/assets/{version}/{file}"}
	fill := strings.NewReplacer("{scope}", "a", "{name}", "a", "{key}", "a", "{session}", sessionName, "{root}", treeRoot, "*", "anything", "{$}", "")
	for _, route := range append(patterns(t, h), web.Patterns()...) {
		_, pattern, _ := strings.Cut(route, " ")
		if slices.Contains(open, pattern) {
			continue
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if method+" "+pattern == "POST /ui/logout" {
				continue // it only deletes the cookie
			}
			got := s.send(method, fill.Replace(pattern), "")
			if got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s: %d without a key", method, pattern, got.StatusCode)
			}
		}
	}
}
