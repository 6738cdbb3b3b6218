package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

func posted(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func (fx sessionFixture) post(form url.Values) (*http.Response, string) {
	fx.Helper()
	return ask(fx.T, web.New(web.Options{Locks: fx.locks}), posted(fx.path, form))
}

// wantOpen fails unless the session is still open.
func (fx sessionFixture) wantOpen() {
	fx.Helper()
	if s, err := fx.locks.Session(fx.Context(), fx.id.Ref()); err != nil || s.Ended != 0 || s.Leases != 2 {
		fx.Errorf("the session has ended: %+v, %v", s, err)
	}
}

func TestRevokedSessionIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		skip  url.Values
		state lock.State
	}{
		"with its grace":     {url.Values{}, lock.InGrace},
		"skipping its grace": {url.Values{"skip_grace": {"1"}}, lock.Free},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
				form := url.Values{"reason": {"  host\r\nis <gone> "}, "skip_grace": c.skip["skip_grace"]}
				for range 2 { // as after a lost answer
					r, _ := fx.post(form)
					wantStatus(fx.T, r, http.StatusSeeOther)
					if got := r.Header.Get("Location"); got != fx.path+"?revoked=1" {
						t.Errorf("leads to %q", got)
					}
				}
				_, body := fx.get(fx.path + "?revoked=1")
				wantText(fx.T, body, `<div class="notice" role="status"`, "Revoked.", `<span class="pill revoked">revoked</span>`,
					"<bdi>host is &lt;gone&gt;</bdi>", "stay in grace for up to 10 s")
				wantNoText(fx.T, body, "<textarea", `role="alert" tabindex`)
				if l, err := fx.locks.Lock(fx.Context(), "billing:a"); err != nil || l.State != c.state {
					t.Errorf("the lock is %s, %v, want %s", l.State, err, c.state)
				}
			})
		})
	}
}

func TestRefusedRevocationOfASession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reach  func(sessionFixture)
		reason string
		status int
		words  string
		form   bool
	}{
		"the reason is missing":          {nil, "", http.StatusBadRequest, "reason has 0 characters", true},
		"the reason is blank":            {nil, " \r\n ", http.StatusBadRequest, "reason has 0 characters", true},
		"the reason is too long":         {nil, "stuck <b>" + strings.Repeat("x", lock.MaxReasonLength), http.StatusBadRequest, "reason has 509 characters", true},
		"the reason has control bytes":   {nil, "stuck <b>\x00", http.StatusBadRequest, "control character", true},
		"its holder has closed it":       {sessionFixture.close, "stuck", http.StatusConflict, "The session has ended. There is nothing to revoke.", false},
		"it has expired":                 {func(sessionFixture) { time.Sleep(41 * time.Second) }, "stuck", http.StatusConflict, "The session has ended. There is nothing to revoke.", false},
		"the reason is missing in grace": {func(sessionFixture) { time.Sleep(39 * time.Second) }, "", http.StatusBadRequest, "reason has 0 characters", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
				if c.reach != nil {
					c.reach(fx)
				}
				r, body := fx.post(url.Values{"reason": {c.reason}, "skip_grace": {"1"}})
				wantStatus(fx.T, r, c.status)
				wantText(fx.T, body, c.words, `role="alert" tabindex`, "<bdi>worker-1</bdi>")
				if !c.form {
					wantNoText(fx.T, body, "<textarea")
					return
				}
				wantText(fx.T, body, `name="skip_grace" value="1" checked>`)
				if strings.HasPrefix(c.reason, "stuck") {
					wantText(fx.T, body, ">stuck &lt;b&gt;")
				}
				fx.wantOpen()
			})
		})
	}
}

// TestOnlyAdminsForAllNamesRevokeSessions: others see no form, and their revocations are refused.
func TestOnlyAdminsForAllNamesRevokeSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key    access.Key
		status int
		words  string
	}{
		"a reader":               {access.Key{Role: access.Read}, http.StatusForbidden, "role admin"},
		"a holder":               {access.Key{Role: access.Lock}, http.StatusForbidden, "role admin"},
		"an admin of some names": {access.Key{Role: access.Admin, Prefixes: []string{"billing", "gpu", "ops"}}, http.StatusForbidden, "does not cover"},
		"an admin":               {access.Key{Role: access.Admin}, http.StatusSeeOther, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
				r, body := fx.as(c.key, httptest.NewRequest(http.MethodGet, fx.path, nil))
				wantStatus(fx.T, r, http.StatusOK)
				may := c.status == http.StatusSeeOther
				if strings.Contains(body, "<textarea") != may {
					t.Errorf("the page offers to revoke: %t, want %t", !may, may)
				}
				r, body = fx.as(c.key, posted(fx.path, url.Values{"reason": {"stuck"}}))
				wantStatus(fx.T, r, c.status)
				if may {
					return
				}
				wantText(fx.T, body, c.words, `role="alert" tabindex`, "<bdi>worker-1</bdi>")
				wantNoText(fx.T, body, "<textarea")
				fx.wantOpen()
			})
		})
	}
}
