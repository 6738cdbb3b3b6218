package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

func slot(n int) *int { return &n }

func revokePermitByKeyboard(t *testing.T, browser context.Context) {
	fx := newSharedFixture()
	b := open(t, browser, fx)
	b.visit("/ui/locks/gpu:pool", 1280, 800)
	b.waitLive()
	b.tabTo("form[data-holder='train-b'] button")
	b.press(kb.Enter)
	b.wait("document.getElementById('ask').open && document.activeElement.id === 'reason'")
	if got := b.text("#ask dl"); !strings.Contains(got, "train-b") || !strings.Contains(got, "Slot\n2") {
		t.Errorf("the dialog shows %q", got)
	}
	b.press("it leaks")
	b.tabTo("#ask input[name=skip_grace]")
	b.press(" ")
	b.tabTo("#ask .strong")
	b.press(kb.Enter)
	b.wait("document.querySelector('.notice')?.innerText.includes('Token 3 no longer holds slot 2 of gpu:pool.')")
	b.wait("location.pathname === '/ui/locks/gpu:pool' && location.search === '' && document.querySelectorAll('.leases tbody tr').length === 2")
	if d := cmp.Diff([]lock.Revoke{{Name: "gpu:pool", Token: 3, Slot: slot(2), Reason: "it leaks", SkipGrace: true}}, fx.revocations()); d != "" {
		t.Error(d)
	}
}

func revokePhase(t *testing.T, browser context.Context) {
	fx := newSharedFixture()
	b := open(t, browser, fx)
	b.visit("/ui/locks/db:schema?back=prefix%3Ddb", 1280, 800)
	b.waitLive()
	b.do(b.ctx, chromedp.Click(chromedp.CSS("form[data-title] button")))
	b.wait("document.activeElement.id === 'reason'")
	if got := b.text("#ask"); !strings.Contains(got, "Revoke all 3 leases?") || strings.Contains(got, "Slot") {
		t.Errorf("the dialog says %q", got)
	}
	b.press("the writer must go on")
	b.do(b.ctx, chromedp.Click(chromedp.CSS("#ask .strong")))
	b.wait("document.querySelector('.notice')?.innerText.includes('Token 1 no longer holds db:schema.')")
	b.wait("document.querySelector('.leases .holder').innerText === 'migration 218' && location.search === '?back=prefix%3Ddb'")
	if d := cmp.Diff([]lock.Revoke{{Name: "db:schema", Token: 1, Reason: "the writer must go on"}}, fx.revocations()); d != "" {
		t.Error(d)
	}
}

// formsOf returns the page's forms to revoke.
func formsOf(body string) []string {
	return strings.Split(body, "data-revoke")[1:]
}

func TestFormsIdentifyTheLease(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		forms       int
		has, hasNot string
	}{
		"/ui/locks/jobs:night": {1, `name="back" value="lock=jobs%3Anight"`, `name="slot"`},
		"/ui/locks/gpu:pool":   {3, `name="slot" value="2"`, `name="since"`},
		"/ui/locks/db:schema":  {4, `name="since" value="2031-05-04T11:59:31Z"`, "nothing"},
	} {
		_, body := get(t, newSharedFixture(), path)
		page, _, _ := strings.Cut(body, "<dialog")
		if n := len(formsOf(page)); n != c.forms {
			t.Errorf("%s has %d forms, want %d", path, n, c.forms)
		}
		wantText(t, page, c.has)
		if strings.Contains(page, c.hasNot) {
			t.Errorf("%s has %q", path, c.hasNot)
		}
	}
}

func TestRevokeFormForSeveralLeases(t *testing.T) {
	t.Parallel()
	r, body := get(t, newSharedFixture(), "/ui/revoke?name=db:schema&token=1&back=lock%3Ddb%253Aschema")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoke all 3 leases?", "<bdi>report-1</bdi><bdi>report-2</bdi><bdi>report-3</bdi>", `href="/ui/locks/db:schema">Cancel`)
	r, body = get(t, newSharedFixture(), "/ui/revoke?name=db:schema&token=1&slot=2")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoke this lease?", "<bdi>report-2</bdi>", `name="slot" value="2"`, `name="since" value="2031-05-04T11:59:31Z"`)
	for _, query := range []string{"slot=9", "slot=x", "slot=-1", "slot=2&since=noon", "slot=2&since=2031-05-04T11:59:30Z"} {
		r, body := get(t, newSharedFixture(), "/ui/revoke?name=db:schema&token=1&"+query)
		wantText(t, body, "Nothing was revoked")
		if r.StatusCode != http.StatusBadRequest && r.StatusCode != http.StatusConflict {
			t.Errorf("%s: status %d", query, r.StatusCode)
		}
	}
}

func slotForm(since string) url.Values {
	f := form("db:schema", "1", "stuck", "lock=db%3Aschema&prefix=db")
	f.Set("slot", "2")
	f.Set("since", since)
	return f
}

func TestOneSharedLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	fx, granted := newSharedFixture(), time.Date(2031, 5, 4, 11, 59, 31, 0, time.UTC)
	r, _ := post(t, fx, slotForm(granted.Format(time.RFC3339)))
	wantStatus(t, r, http.StatusSeeOther)
	if got, want := r.Header.Get("Location"), "/ui/locks/db:schema?back=prefix%3Ddb&revoked=db%3Aschema&slot=2&token=1"; got != want {
		t.Errorf("leads to %q, want %q", got, want)
	}
	if d := cmp.Diff([]lock.Revoke{{Name: "db:schema", Token: 1, Slot: slot(2), AcquiredAt: granted, Reason: "stuck"}}, fx.revocations()); d != "" {
		t.Error(d)
	}
	_, body := get(t, fx, r.Header.Get("Location"))
	wantText(t, body, "Revoked.", `no longer holds slot <b class="num">2</b> of <b class="lock">db:schema</b>`)
}

func TestNextLeaseInASlotIsNotRevoked(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	for range 2 {
		fx.grant(lock.Acquire{Name: "db:schema", Mode: lock.Shared, Holder: "report", TTL: time.Minute}, 10*time.Second)
	}
	fx.do(lock.Release{Name: "db:schema", LeaseID: callID(2)}, 5*time.Second)
	fx.grant(lock.Acquire{Name: "db:schema", Mode: lock.Shared, Holder: "the next", TTL: time.Minute}, time.Second)
	r, body := post(t, fx, slotForm("2031-05-04T11:59:50Z"))
	wantStatus(t, r, http.StatusConflict)
	wantText(t, body, "The lease with token 1 in slot 2 of the lock db:schema has ended.", "Back to the lock<")
	if len(fx.revocations()) != 0 {
		t.Error("revoked")
	}
}

func TestForeignReturnLocationsBecomeTheList(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"lock=..%2F..%2Fevil", "lock=%2F%2Fevil", "lock=", "lock=a%2Fb", "%zz"} {
		r, _ := post(t, newBusyFixture(), form("deploy:production", "4", "stuck", back))
		if got := r.Header.Get("Location"); !strings.HasPrefix(got, "/ui/?revoked=") {
			t.Errorf("%s redirects to %q", back, got)
		}
	}
}
