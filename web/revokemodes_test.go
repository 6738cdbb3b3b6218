package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func slot(n int) *int { return &n }

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
		_, body := get(t, webtest.NewSharedService(), path)
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
	r, body := get(t, webtest.NewSharedService(), "/ui/revoke?name=db:schema&token=1&back=lock%3Ddb%253Aschema")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoke all 3 leases?", `data-fill="waiters">2</dd>`, `data-fill="grace">none</dd>`, "<bdi>report-1</bdi><bdi>report-2</bdi><bdi>report-3</bdi>", `href="/ui/locks/db:schema">Cancel`)
	r, body = get(t, webtest.NewSharedService(), "/ui/revoke?name=db:schema&token=1&slot=2")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Revoke this lease?", "<bdi>report-2</bdi>", `name="slot" value="2"`, `name="since" value="2031-05-04T11:59:31Z"`)
	for _, query := range []string{"slot=9", "slot=x", "slot=-1", "slot=2&since=noon", "slot=2&since=2031-05-04T11:59:30Z"} {
		r, body := get(t, webtest.NewSharedService(), "/ui/revoke?name=db:schema&token=1&"+query)
		wantText(t, body, "Nothing was revoked")
		if r.StatusCode != http.StatusBadRequest && r.StatusCode != http.StatusConflict {
			t.Errorf("%s: status %d", query, r.StatusCode)
		}
	}
}

// TestFormsSayHowLongTheGraceIs, and the dialog has it from the button, with the waiters if the page knows them.
func TestFormsSayHowLongTheGraceIs(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	for _, grace := range []time.Duration{2 * time.Second, 5 * time.Second} {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "db", Mode: lock.Shared}}, Holder: "h", TTL: time.Minute, Grace: grace}, 0)
	}
	_, body := get(t, fx, "/ui/revoke?name=db&token=1")
	wantText(t, body, `data-fill="grace">up to 5 s</dd>`)
	_, body = get(t, fx, "/ui/locks/db")
	wantText(t, body, `data-grace="2 s" data-waiters="0"`, `data-grace="5 s" data-waiters="0"`, `data-grace="up to 5 s" data-waiters="0"`)
}

func slotForm(since string) url.Values {
	f := form("db:schema", "1", "stuck", "lock=db%3Aschema&prefix=db")
	f.Set("slot", "2")
	f.Set("since", since)
	return f
}

func TestOneSharedLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	fx, granted := webtest.NewSharedService(), time.Date(2031, 5, 4, 11, 59, 31, 0, time.UTC)
	r, _ := post(t, fx, slotForm(granted.Format(time.RFC3339)))
	wantStatus(t, r, http.StatusSeeOther)
	if got, want := r.Header.Get("Location"), "/ui/locks/db:schema?back=prefix%3Ddb&revoked=db%3Aschema&slot=2&token=1"; got != want {
		t.Errorf("leads to %q, want %q", got, want)
	}
	if d := cmp.Diff([]lock.Revoke{{Name: "db:schema", Token: 1, Slot: slot(2), AcquiredAt: granted, Reason: "stuck"}}, fx.Revocations()); d != "" {
		t.Error(d)
	}
	_, body := get(t, fx, r.Header.Get("Location"))
	wantText(t, body, "Revoked.", `no longer holds slot <b class="num">2</b> of <b class="lock">db:schema</b>`)
}

func TestNextLeaseInASlotIsNotRevoked(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	for range 2 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "db:schema", Mode: lock.Shared}}, Holder: "report", TTL: time.Minute}, 10*time.Second)
	}
	fx.Apply(lock.Release{Locks: []string{"db:schema"}, LeaseID: webtest.CallID(2)}, 5*time.Second)
	fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "db:schema", Mode: lock.Shared}}, Holder: "the next", TTL: time.Minute}, time.Second)
	r, body := post(t, fx, slotForm("2031-05-04T11:59:50Z"))
	wantStatus(t, r, http.StatusConflict)
	wantText(t, body, "The lease with token 1 in slot 2 of the lock db:schema has ended.", "Back to the lock<")
	if len(fx.Revocations()) != 0 {
		t.Error("revoked")
	}
}

func TestForeignReturnLocationsBecomeTheList(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"lock=..%2F..%2Fevil", "lock=%2F%2Fevil", "lock=", "lock=a%2Fb", "%zz"} {
		r, _ := post(t, webtest.NewBusyService(), form("deploy:production", "4", "stuck", back))
		if got := r.Header.Get("Location"); !strings.HasPrefix(got, "/ui/?revoked=") {
			t.Errorf("%s redirects to %q", back, got)
		}
	}
}

// TestSeveralPermitsAreOneLease on the page, with all their slots, and any of these finds it.
func TestSeveralPermitsAreOneLease(t *testing.T) {
	t.Parallel()
	fx := webtest.NewSharedService()
	several := func(holder string, n int) lock.Acquire {
		return lock.Acquire{Locks: []lock.Member{{Name: "gpu:several", Mode: lock.Permit, Capacity: 4, Permits: n}}, Holder: holder, TTL: time.Hour}
	}
	token := fx.Grant(several("train-x", 3), 0)
	fx.Wait(several("train-y", 2), 0)
	r, body := get(t, fx, "/ui/locks/gpu:several")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "3 of 4 out", "<small>slots 1 2 3</small>", "in slots 1 2 3,", "<small>2 of 4</small>", `name="slot" value="1"`)
	_, body = get(t, fx, fmt.Sprintf("/ui/revoke?name=gpu:several&token=%d&slot=3", token))
	wantText(t, body, "Revoke this lease?", "<bdi>train-x</bdi>")
}
