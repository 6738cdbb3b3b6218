package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// inForms calls test with a handler and all its forms, each filled in so that it would change something. At the end
// nothing must have changed.
func inForms(t *testing.T, test func(h http.Handler, forms map[string]url.Values)) {
	t.Helper()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		trees := treeFixture{fx.setFixture}
		trees.declare("repo")
		trees.freeze(lock.FreezeRequest{Scope: "billing:", Reason: "r"})
		token := trees.acquire("h", "deploy:production")
		test(web.New(web.Options{Locks: fx.locks}), map[string]url.Values{
			"/ui/revoke": form("deploy:production", fmt.Sprint(token), "stuck", ""), fx.path: {"reason": {"stuck"}},
			"/ui/trees": {"root": {"jobs"}}, "/ui/trees/repo": {"confirm": {"1"}},
			"/ui/freezes": {"scope": {"jobs:"}, "reason": {"r"}}, "/ui/freezes/billing:": {"confirm": {"1"}},
		})
		trees.wantFrozen("jobs:", false)
		trees.wantFrozen("billing:", true)
		trees.wantTrees("repo")
		fx.wantOpen()
		if l, err := fx.locks.Lock(fx.Context(), "deploy:production"); err != nil || l.State != lock.Held {
			t.Errorf("the lock is %s, %v", l.State, err)
		}
	})
}

func TestOtherSitesCannotSendForms(t *testing.T) {
	t.Parallel()
	inForms(t, func(h http.Handler, forms map[string]url.Values) {
		for name, head := range map[string][2]string{
			"a cross-site browser":             {"Sec-Fetch-Site", "cross-site"},
			"a subdomain":                      {"Sec-Fetch-Site", "same-site"},
			"a browser that sends only Origin": {"Origin", "https://evil.example"},
			"a page without a referrer":        {"Origin", "null"},
		} {
			for path, filled := range forms {
				r := posted(path, filled)
				r.Header.Set(head[0], head[1])
				answer, body := ask(t, h, r)
				if answer.StatusCode != http.StatusForbidden || !strings.Contains(body, "nothing was done") {
					t.Errorf("%s, %s: %d %s", path, name, answer.StatusCode, body)
				}
			}
		}
	})
}

// TestMalformedFormsAreRefused, also if the URL has what the form should have.
func TestMalformedFormsAreRefused(t *testing.T) {
	t.Parallel()
	inForms(t, func(h http.Handler, forms map[string]url.Values) {
		for path, filled := range forms {
			for text, want := range map[string]int{
				"": http.StatusBadRequest, "%zz": http.StatusBadRequest, "x=" + strings.Repeat("x", 17<<10): http.StatusRequestEntityTooLarge,
			} {
				r := posted(path+"?"+filled.Encode(), nil)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
				if answer, body := ask(t, h, r); answer.StatusCode != want {
					t.Errorf("%s with %.10q: %d %s, want %d", path, text, answer.StatusCode, body, want)
				}
			}
		}
	})
}

// A brokenService fails all calls that the pages of sessions, trees, freezes and rules make.
type brokenService struct {
	paddock.Service
	fault error
}

func (b brokenService) Session(context.Context, lock.SessionRef) (s lock.SessionInfo, err error) {
	return s, b.fault
}
func (b brokenService) Sessions(context.Context, paddock.SessionQuery) (p paddock.Page[lock.SessionInfo], err error) {
	return p, b.fault
}
func (b brokenService) Trees(context.Context) ([]lock.Tree, error) { return nil, b.fault }
func (b brokenService) RemoveTree(context.Context, string) error   { return b.fault }
func (b brokenService) DeclareTree(context.Context, string) (tree lock.Tree, err error) {
	return tree, b.fault
}

func (b brokenService) Freezes(context.Context) ([]lock.Freeze, error) { return nil, b.fault }
func (b brokenService) Rules(context.Context) ([]lock.Rule, error)     { return nil, b.fault }
func (b brokenService) Thaw(context.Context, lock.ThawRequest) error   { return b.fault }
func (b brokenService) Frozen(context.Context, lock.Scope) (f lock.FreezeStatus, err error) {
	return f, b.fault
}
func (b brokenService) Freeze(context.Context, lock.FreezeRequest) (f lock.FreezeStatus, err error) {
	return f, b.fault
}

func TestProblemsOfPagesAreShown(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	fault := &lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away.", Cause: errors.New("secret of the machine")}
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "/ui/sessions", nil), httptest.NewRequest(http.MethodGet, "/ui/sessions/0000000000000001", nil),
		httptest.NewRequest(http.MethodGet, "/ui/trees", nil), httptest.NewRequest(http.MethodGet, "/ui/trees/repo", nil),
		httptest.NewRequest(http.MethodGet, "/ui/locks/repo", nil),
		posted("/ui/trees", url.Values{"root": {"repo"}}), posted("/ui/trees/repo", url.Values{"confirm": {"1"}}),
		httptest.NewRequest(http.MethodGet, "/ui/freezes?thawed=repo", nil), httptest.NewRequest(http.MethodGet, "/ui/freezes/repo", nil), httptest.NewRequest(http.MethodGet, "/ui/rules", nil),
		posted("/ui/freezes", url.Values{"scope": {"repo"}, "reason": {"r"}}), posted("/ui/freezes/repo", url.Values{"confirm": {"1"}}),
	} {
		answer, body := ask(t, web.New(web.Options{Locks: brokenService{locks, fault}}), r)
		wantStatus(t, answer, http.StatusServiceUnavailable)
		wantText(t, body, "The database is away.", `role="alert"`)
		wantNoText(t, body, "No such session", "No open session", "No such tree", "No tree is declared", "No such freeze", "No lock is frozen", "No rule is set", "Thawed.", "secret of the machine")
		wantSecured(t, answer, body)
	}
	r, body := getFrom(t, locks, "/ui/sessions?holder=kept&cursor=zz")
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "cursor is invalid", `role="alert"`, `value="kept"`)
	r, _ = ask(t, web.New(web.Options{Locks: locks}), httptest.NewRequest(http.MethodDelete, "/ui/trees/repo", nil))
	wantStatus(t, r, http.StatusMethodNotAllowed)
}
