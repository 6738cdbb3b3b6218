package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func form(name, token, reason, back string) url.Values {
	return url.Values{"name": {name}, "token": {token}, "reason": {reason}, "back": {back}}
}

func TestRevokeRevokesAndRedirectsBack(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	r, _ := post(t, fx, form("deploy:production", "4", "  stuck\r\nsince noon ", "prefix=deploy&refresh=5&evil=https%3A%2F%2Fx"))
	wantStatus(t, r, http.StatusSeeOther)
	if got, want := r.Header.Get("Location"), "/ui/?prefix=deploy&refresh=5&revoked=deploy%3Aproduction&token=4"; got != want {
		t.Errorf("leads to %q, want %q", got, want)
	}
	want := []lock.Revoke{{Name: "deploy:production", Token: 4, Reason: "stuck since noon"}}
	if d := cmp.Diff(want, fx.Revocations()); d != "" {
		t.Error(d)
	}
	_, body := get(t, fx, r.Header.Get("Location"))
	wantText(t, body, `role="status"`, "Revoked.", `<b class="lock">deploy:production</b>`, "The lock stays in grace for another 2 s.", `<b class="left">revoked</b>`)
}

func TestRevokeMaySkipTheGrace(t *testing.T) {
	t.Parallel()
	for name, revocations := range map[string]int{"of a lease": 0, "of a lease that was revoked before": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := webtest.NewBusyService()
			typed := form("deploy:production", "4", "stuck", "")
			for range revocations {
				post(t, fx, typed)
			}
			_, body := get(t, fx, "/ui/revoke?name=deploy:production&token=4")
			wantText(t, body, `<input type="checkbox" name="skip_grace" value="1">`)
			typed.Set("skip_grace", "1")
			r, _ := post(t, fx, typed)
			wantStatus(t, r, http.StatusSeeOther)
			want := lock.Revoke{Name: "deploy:production", Token: 4, Reason: "stuck", SkipGrace: true}
			if d := cmp.Diff(want, fx.Revocations()[revocations]); d != "" {
				t.Error(d)
			}
			_, body = get(t, fx, r.Header.Get("Location"))
			wantText(t, body, "Revoked.")
			if strings.Contains(body, "The grace keeps others out") {
				t.Error("the page mentions a skipped grace")
			}
		})
	}
}

func TestRefusedRevokeKeepsSkipGrace(t *testing.T) {
	t.Parallel()
	typed := form("deploy:production", "4", " ", "")
	typed.Set("skip_grace", "1")
	_, body := post(t, webtest.NewBusyService(), typed)
	wantText(t, body, `name="skip_grace" value="1" checked>`)
}

func TestRefusedRevokeKeepsTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form   url.Values
		status int
		words  string
	}{
		"another token holds the lock":  {form("deploy:production", "3", "stuck <b>", ""), 409, "Token 3 does not hold the lock"},
		"the lock is free":              {form("deploy:staging", "5", "stuck <b>", ""), 409, "no token holds it now"},
		"the reason is too long":        {form("deploy:production", "4", "stuck <b>"+strings.Repeat("x", 500), ""), 400, "reason has 509 characters"},
		"the reason has control bytes":  {form("deploy:production", "4", "stuck <b>\x00", ""), 400, "control character"},
		"the token is no number":        {form("deploy:production", "4x", "stuck <b>", ""), 400, "token must be a whole number"},
		"the token is beyond all":       {form("deploy:production", "9007199254740992", "stuck <b>", ""), 400, "token must be a whole number"},
		"the name cannot be a lock's":   {form("a/b", "4", "stuck <b>", ""), 400, "name has an invalid character"},
		"the name is missing":           {form("", "4", "stuck <b>", ""), 400, "name is empty"},
		"the name and token are hidden": {url.Values{"reason": {"stuck <b>"}}, 400, "token must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, body := post(t, webtest.NewBusyService(), c.form)
			wantStatus(t, r, c.status)
			wantText(t, body, c.words, `role="alert"`, "stuck &lt;b&gt;")
		})
	}
}

func TestBlankReasonIsEmpty(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	r, body := post(t, fx, form("deploy:production", "4", " \r\n ", ""))
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "reason has 0 characters")
	if len(fx.Revocations()) != 0 {
		t.Error("revoked")
	}
}

func TestUnknownOutcomeShowsTheFormAgain(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	fx.BreakDown(&lock.Error{Code: lock.ErrUnknownOutcome, Detail: "The answer was lost. Send it again."})
	r, body := post(t, fx, form("deploy:production", "4", "stuck", "state=held"))
	wantStatus(t, r, http.StatusServiceUnavailable)
	wantText(t, body, "The answer was lost. Send it again.", "unknown</dd>", ">stuck</textarea>", `name="back" value="state=held"`)
}

func TestRevokeForm(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewBusyService(), "/ui/revoke?name=deploy:production&token=4&back=prefix%3Ddeploy")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "deploy:production", "<bdi>pipeline 1881</bdi>", "This does not stop the holder", "fencing",
		`<dt>Waiters</dt><dd class="num" data-fill="waiters">0</dd>`, `<dt>Grace</dt><dd data-fill="grace">2 s</dd>`,
		`required maxlength="500"`, `href="/ui/?prefix=deploy">Cancel`)
	for target, want := range map[string]int{
		"/ui/revoke?name=deploy:production&token=3": http.StatusConflict,
		"/ui/revoke?name=deploy:staging&token=5":    http.StatusConflict,
		"/ui/revoke?name=a/b&token=3":               http.StatusBadRequest,
		"/ui/revoke":                                http.StatusBadRequest,
	} {
		r, body := get(t, webtest.NewBusyService(), target)
		wantStatus(t, r, want)
		wantText(t, body, "Nothing was revoked", "Back to the locks")
		if strings.Contains(body, "<textarea") {
			t.Errorf("%s has a form", target)
		}
	}
}
