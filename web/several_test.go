package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// picks are the leases that the page offers to select.
func picks(t *testing.T, fx *webtest.Service, target string) (values []string) {
	t.Helper()
	_, body := get(t, fx, target)
	for _, m := range regexp.MustCompile(`form="several" name="lease" value="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		values = append(values, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	return values
}

func postSeveral(t *testing.T, fx *webtest.Service, form url.Values, keys ...access.Key) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/ui/revocations", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, k := range keys {
		r = r.WithContext(access.WithKey(r.Context(), k))
	}
	return ask(t, web.New(web.Options{Locks: fx}), r)
}

func TestSeveralLeasesAreRevokedWithOneReason(t *testing.T) {
	t.Parallel()
	fx := webtest.NewSharedService()
	all := picks(t, fx, "/ui/")
	if len(all) != 10 {
		t.Fatalf("%d leases can be selected, want 10", len(all))
	}
	form := url.Values{"lease": {all[0], all[3], all[len(all)-1]}, "back": {"prefix=d"}}
	r, body := postSeveral(t, fx, form)
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoke 3 leases?", `<b class="lock">db:schema</b>`, "<bdi>report-1</bdi>", `<b class="lock">gpu:pool</b>`, "<bdi>train-a</bdi>",
		"<bdi>worker-1</bdi>", "<small>2 waiting</small>", "<small>no waiters</small>", "This does not stop the holders", `href="/ui/?prefix=d">Cancel`)
	if len(fx.Revocations()) != 0 {
		t.Fatal("revoked without a confirmation")
	}
	form.Set("reason", " ")
	r, body = postSeveral(t, fx, form)
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "Revoke 3 leases?", `class="problem"`)
	form.Set("reason", " pager\n4711 ")
	r, body = postSeveral(t, fx, form)
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoked 3 of 3 leases", "<small>revoked</small>", `href="/ui/?prefix=d">Back to the locks`)
	done := fx.Revocations()
	if len(done) != 3 || done[0].Name != "db:schema" || done[1].Name != "gpu:pool" || done[2].Name != "jobs:night" {
		t.Errorf("revoked %v", done)
	}
	for _, one := range done {
		if one.Reason != "pager 4711" {
			t.Errorf("the reason is %q", one.Reason)
		}
	}
}

// TestEndedLeaseIsNotRevokedWithOthers: of several leases, one has ended since it was selected, and a later lease of its
// lock stays.
func TestEndedLeaseIsNotRevokedWithOthers(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	all := picks(t, fx, "/ui/?prefix=billing")
	fx.Pass(time.Minute) // the lease of billing:invoice-run is over
	fx.Grant(lock.Acquire{Locks: lock.One("billing:invoice-run"), Holder: "later", TTL: time.Hour}, 0)
	r, body := postSeveral(t, fx, url.Values{"lease": all, "reason": {"r"}})
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoked 1 of 2 leases", "no longer holds the lock billing:invoice-run")
	if done := fx.Revocations(); len(done) != 1 || done[0].Name != "billing:month-end" {
		t.Errorf("revoked %v", done)
	}
	r, body = postSeveral(t, fx, url.Values{"lease": all[:1]})
	wantStatus(t, r, http.StatusConflict)
	wantText(t, body, "Nothing was revoked")
}

func TestSelectionIsRefused(t *testing.T) {
	t.Parallel()
	admin := access.Key{ID: "k", Name: "ops", Role: access.Admin}
	pick := picks(t, webtest.NewBusyService(), "/ui/?prefix=billing:m")
	for name, c := range map[string]struct {
		form   url.Values
		key    access.Key
		status int
		text   string
	}{
		"none":           {url.Values{}, admin, http.StatusBadRequest, "select at least one lease"},
		"too many":       {url.Values{"lease": make([]string, 101)}, admin, http.StatusBadRequest, "select at most 100 leases"},
		"not a query":    {url.Values{"lease": {"%zz"}}, admin, http.StatusBadRequest, "select it again"},
		"no token":       {url.Values{"lease": {"name=x"}, "reason": {"r"}}, admin, http.StatusBadRequest, "token must be a whole number"},
		"hostile":        {url.Values{"lease": {"name=" + url.QueryEscape(webtest.Hostile) + "&token=6"}}, admin, http.StatusBadRequest, "&lt;script&gt;"},
		"not permitted":  {url.Values{"lease": pick, "reason": {"r"}}, access.Key{ID: "k", Name: "eyes", Role: access.Read}, http.StatusForbidden, "needs the role admin"},
		"larger than it": {url.Values{"lease": {strings.Repeat("x", 16<<10)}}, admin, http.StatusRequestEntityTooLarge, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := webtest.NewBusyService()
			r, body := postSeveral(t, fx, c.form, c.key)
			wantStatus(t, r, c.status)
			wantText(t, body, c.text)
			wantSecured(t, r, body)
			if len(fx.Revocations()) != 0 {
				t.Error("revoked")
			}
		})
	}
}
