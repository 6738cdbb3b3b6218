package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// withFreeze calls test with a service in memory in which ops has frozen billing: for half an hour, in a bubble whose
// time begins at the start of the year 2000. A lock of it and one outside are held.
func withFreeze(t *testing.T, test func(treeFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := treeFixture{setFixture{t, memlock.New().Replica(1)}}
		fx.hold("worker", "billing:eu", lock.Exclusive)
		fx.hold("other", "jobs:a", lock.Exclusive)
		fx.freeze(lock.FreezeRequest{Scope: "billing:", Reason: "a <b>migration", For: 30 * time.Minute, By: "ops"})
		test(fx)
	})
}

func (fx treeFixture) freeze(r lock.FreezeRequest) {
	fx.Helper()
	if _, err := fx.locks.Freeze(fx.Context(), r); err != nil {
		fx.Fatal(err)
	}
}

// wantFrozen fails unless the scope is frozen, or not.
func (fx treeFixture) wantFrozen(s lock.Scope, want bool) (f lock.FreezeStatus) {
	fx.Helper()
	f, err := fx.locks.Frozen(fx.Context(), s)
	if frozen := !errors.Is(err, lock.ErrNotFound); frozen != want {
		fx.Errorf("%s is frozen: %t, %v", s, frozen, err)
	}
	return f
}

func TestFrozenLocksAreShown(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		time.Sleep(time.Minute)
		fx.freeze(lock.FreezeRequest{Scope: "jobs:b", Reason: "for ever"})
		fx.wait("waiter", "billing:us")
		body := fx.page("/ui/locks/billing:us")
		wantText(fx.T, body, `<span class="pill">free</span> <span class="pill frozen">frozen</span>`, `Frozen by <bdi>ops</bdi>:</strong> <bdi>a &lt;b&gt;migration</bdi>`,
			"2000-01-01 00:30:00", `data-left-ms="1740000" data-end="0 s">29 min 0 s`, `<b class="lock">billing:</b>`, `href="/ui/freezes/billing:"`, "the end of the freeze")
		wantNoText(fx.T, body, "next in line", "Freeze this lock")
		body = fx.page("/ui/locks/jobs:b")
		wantText(fx.T, body, "Frozen:</strong> <bdi>for ever</bdi>", "until it is thawed", "<bdi>for ever</bdi></div>", `<span class="past">none</span>`)
		wantNoText(fx.T, body, "whose names begin", "unknown")
		wantText(fx.T, fx.page("/ui/locks/jobs:a"), `<a href="/ui/freezes?scope=jobs%3Aa">Freeze this lock</a>`)
		wantText(fx.T, fx.page("/ui/?prefix=billing:eu"), `<span class="pill">held</span> <span class="pill frozen">frozen</span>`)
		wantNoText(fx.T, fx.page("/ui/?prefix=jobs:a"), "frozen</span>")
	})
}

func TestClosedLocksAreShown(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		id := lock.LeaseID{1}
		if _, err := fx.locks.Acquire(fx.Context(), lock.Acquire{Locks: lock.One("nightly"), LeaseID: id, Holder: "w<1", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if err := fx.locks.Release(fx.Context(), lock.Release{Locks: []string{"nightly"}, LeaseID: id, Closed: lock.Closing{For: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		fx.wait("waiter", "nightly")
		wantText(fx.T, fx.page("/ui/locks/nightly"), `<span class="pill done">done</span>`, "2000-01-01 01:00:00</time> UTC, by <bdi>w&lt;1</bdi>,", "2000-01-01 00:00:00",
			`data-left-ms="3600000"`, "the lock to open again", "<bdi>closed until 2000-01-01T01:00:00Z</bdi>")
		wantText(fx.T, fx.page("/ui/"), `<span class="pill done">done</span>`)
		time.Sleep(time.Hour)
		wantNoText(fx.T, fx.page("/ui/locks/nightly"), "done</span>", `id="closed"`)
	})
}

func TestFreezesAreListed(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		fx.freeze(lock.FreezeRequest{Scope: "jobs:b", Reason: "for ever"})
		body := fx.page("/ui/freezes?scope=jobs:a")
		wantText(fx.T, body, `<a href="/ui/freezes/billing:">billing:`, "<bdi>a &lt;b&gt;migration</bdi>", "<bdi>ops</bdi>", "2000-01-01 00:30:00", "<div>it is thawed</div>",
			`action="/ui/freezes"`, `value="jobs:a"`, `value="30"`)
		wantNoText(fx.T, body, "<script>", `role="alert" tabindex`, "No freeze.", "Thawed.", "unknown")
		time.Sleep(30 * time.Minute)
		wantNoText(fx.T, fx.page("/ui/freezes"), "/ui/freezes/billing")
	})
	_, body := getFrom(t, memlock.New().Replica(1), "/ui/freezes")
	wantText(t, body, "No lock is frozen.", `<a href="/ui/freezes" aria-current="page">Freezes</a>`)
}

func TestFreezingAndThawing(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		for range 2 { // as after a lost answer
			r, _ := fx.post("/ui/freezes", url.Values{"scope": {" jobs: "}, "reason": {"a \r\n move"}, "minutes": {"90"}})
			wantStatus(fx.T, r, http.StatusSeeOther)
			if got := r.Header.Get("Location"); got != "/ui/freezes/jobs:?begun=1" {
				t.Errorf("leads to %q", got)
			}
		}
		if f := fx.wantFrozen("jobs:", true); f.Reason != "a move" || f.Until.Sub(f.FrozenAt) != 90*time.Minute {
			t.Errorf("the freeze is %+v", f)
		}
		wantText(fx.T, fx.page("/ui/freezes/jobs:?begun=1"), "<strong>Frozen.</strong>", "<dd>1<small>until they end, work goes on", `for another <span data-left-ms="5400000" data-end="0 s">1 h 30 min<`, `href="/ui/?prefix=jobs%3A&amp;sort=ending"`, "Thaw")
		r, _ := fx.post("/ui/freezes", url.Values{"scope": {"x"}, "reason": {"r"}, "minutes": {""}})
		wantStatus(fx.T, r, http.StatusSeeOther)
		wantText(fx.T, fx.page("/ui/freezes/x"), "<dd>0<small>the work has stopped", "it is thawed", `<a href="/ui/locks/x">x</a>`)
		r, body := fx.post("/ui/freezes/x", url.Values{})
		wantStatus(fx.T, r, http.StatusBadRequest)
		wantText(fx.T, body, "Check the box to confirm", `name="confirm"`)
		fx.wantFrozen("x", true)
		for range 2 {
			r, _ = fx.post("/ui/freezes/jobs:", url.Values{"confirm": {"1"}})
			wantStatus(fx.T, r, http.StatusSeeOther)
		}
		fx.wantFrozen("jobs:", false)
		wantText(fx.T, fx.page(r.Header.Get("Location")), `<div class="notice" role="status"`, "Thawed.", `<b class="lock">jobs:</b>`)
		for _, forged := range []string{"billing:", "%3Cb%3E", ""} {
			wantNoText(fx.T, fx.page("/ui/freezes?thawed="+forged), "Thawed.")
		}
		r, body = getFrom(t, fx.locks, "/ui/freezes/jobs:")
		wantStatus(fx.T, r, http.StatusNotFound)
		wantText(fx.T, body, "No such freeze", `role="alert"`)
	})
}

func TestRefusedFreeze(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ scope, reason, minutes, want string }{
		"it is no name":               {"<b>", "r", "30", "scope"},
		"it has no name":              {"", "r", "30", "scope"},
		"it has no reason":            {"jobs:", " ", "30", "reason"},
		"its end is no number":        {"jobs:", "r", "30m", "minutes must be a whole number from 1 to 44640"},
		"it has already ended":        {"jobs:", "r", "0", "minutes must be"},
		"it is longer than any":       {"jobs:", "r", "44641", "minutes must be"},
		"its end exceeds any integer": {"jobs:", "r", strings.Repeat("9", 30), "minutes must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFreeze(t, func(fx treeFixture) {
				r, body := fx.post("/ui/freezes", url.Values{"scope": {c.scope}, "reason": {c.reason}, "minutes": {c.minutes}})
				wantStatus(fx.T, r, http.StatusBadRequest)
				wantText(fx.T, body, c.want, `role="alert"`, `href="/ui/freezes/billing:"`, `value="`+c.minutes+`"`)
				wantSecured(fx.T, r, body)
				fx.wantFrozen("jobs:", false)
			})
		})
	}
}

// TestOnlyAdminsOfTheScopeFreeze: others see no form, and their requests are refused.
func TestOnlyAdminsOfTheScopeFreeze(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key    access.Key
		form   bool // to freeze
		status int  // of the page
		may    bool // freeze and thaw
	}{
		"a reader":              {access.Key{Role: access.Read}, false, http.StatusOK, false},
		"a client":              {access.Key{Role: access.Lock, Prefixes: []string{"billing"}}, false, http.StatusOK, false},
		"an admin of a part":    {access.Key{Role: access.Admin, Prefixes: []string{"billing:eu"}}, true, http.StatusForbidden, false},
		"an admin of the scope": {access.Key{Role: access.Admin, Prefixes: []string{"billing"}}, true, http.StatusOK, true},
		"an admin":              {access.Key{Role: access.Admin}, true, http.StatusOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFreeze(t, func(fx treeFixture) {
				_, body := fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/freezes", nil))
				if strings.Contains(body, `name="scope"`) != c.form {
					t.Errorf("the list offers to freeze: %t, want %t", !c.form, c.form)
				}
				_, body = fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/locks/billing:eu", nil))
				wantText(fx.T, body, "Frozen by <bdi>ops</bdi>")
				if linked := strings.Contains(body, `href="/ui/freezes/billing:"`); linked != (c.status == http.StatusOK) {
					t.Errorf("the freeze is linked: %t", linked)
				}
				r, body := fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/freezes/billing:", nil))
				wantStatus(fx.T, r, c.status)
				if strings.Contains(body, `name="confirm"`) != c.may {
					t.Errorf("the page offers to thaw: %t, want %t:\n%s", !c.may, c.may, body)
				}
				want := http.StatusForbidden
				if c.may {
					want = http.StatusSeeOther
				}
				r, _ = fx.as(c.key, posted("/ui/freezes", url.Values{"scope": {"billing:"}, "reason": {"r"}}))
				wantStatus(fx.T, r, want)
				r, _ = fx.as(c.key, posted("/ui/freezes/billing:", url.Values{"confirm": {"1"}}))
				wantStatus(fx.T, r, want)
				fx.wantFrozen("billing:", !c.may)
			})
		})
	}
}

// TestOtherKeysSeeNothingOfAFreezeOrARule, in no list, on no page and in no notice.
func TestOtherKeysSeeNothingOfAFreezeOrARule(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		fx.setRules()
		other := access.Key{Role: access.Admin, Prefixes: []string{"jobs"}}
		for target, want := range map[string]int{
			"/ui/freezes": http.StatusOK, "/ui/freezes?thawed=secret": http.StatusOK, "/ui/rules": http.StatusOK, "/ui/freezes/billing:": http.StatusForbidden,
			"/ui/locks/billing:eu": http.StatusForbidden, "/ui/": http.StatusOK,
		} {
			r, body := fx.as(other, httptest.NewRequest(http.MethodGet, target, nil))
			wantStatus(fx.T, r, want)
			wantNoText(fx.T, body, "migration", "Thawed.", "<bdi>ops</bdi>", "pill frozen", "24h")
		}
		_, body := fx.as(other, httptest.NewRequest(http.MethodGet, "/ui/rules", nil))
		wantText(fx.T, body, "jobs:")
		_, body = fx.as(access.Key{Role: access.Read, Prefixes: []string{"none"}}, httptest.NewRequest(http.MethodGet, "/ui/rules", nil))
		wantText(fx.T, body, "No rule is for a lock that your key covers.")
	})
}

func (fx treeFixture) setRules() {
	fx.Helper()
	for _, r := range []lock.Rule{
		{Scope: "billing:", MaxTTL: time.Minute, MaxHold: 24 * time.Hour, MinGrace: 1500 * time.Millisecond, SetBy: "ops"},
		{Scope: "jobs:", Capacity: 5, MaxLeases: 100},
	} {
		if _, err := fx.locks.SetRule(fx.Context(), r); err != nil {
			fx.Fatal(err)
		}
	}
}

func TestRulesAreListed(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		fx.setRules()
		wantText(fx.T, fx.page("/ui/rules"), "billing:<wbr>", `TTL at most <b class="num">1m</b>`, `held at most <b class="num">24h</b>`, `grace at least <b class="num">1.5s</b>`, "<bdi>ops</bdi>",
			`capacity <b class="num">5</b>`, `leases of a key at most <b class="num">100</b>`, "2000-01-01 00:00:00")
	})
	_, body := getFrom(t, memlock.New().Replica(1), "/ui/rules")
	wantText(t, body, "No rule is set.")
}

func TestUntrustedTextOfAFreezeIsEscaped(t *testing.T) {
	t.Parallel()
	withFreeze(t, func(fx treeFixture) {
		hostile := strings.NewReplacer("\u2069", "", "\u202e", "").Replace(webtest.Hostile)
		fx.freeze(lock.FreezeRequest{Scope: "jobs:a", Reason: hostile, By: webtest.Hostile})
		for _, target := range []string{"/ui/freezes", "/ui/freezes/jobs:a", "/ui/locks/jobs:a"} {
			r, body := getFrom(fx.T, fx.locks, target)
			wantSecured(fx.T, r, body)
			wantText(fx.T, body, "&lt;script&gt;alert(1)")
			wantNoText(fx.T, body, "<script>", "<img src=x")
		}
	})
}

// TestAClosedLockIsOpened on the page, by a reader who may revoke.
func TestAClosedLockIsOpened(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	id := lock.LeaseID{9}
	g, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("closed"), LeaseID: id, Holder: "worker", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Release(t.Context(), lock.Release{Locks: []string{"closed"}, LeaseID: id, Closed: lock.Closing{For: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	_, body := getFrom(t, locks, "/ui/locks/closed")
	wantText(t, body, "Open the lock</button>")
	token := strconv.FormatInt(int64(g.Token), 10)
	r, body := getFrom(t, locks, "/ui/revoke?name=closed&token="+token+"&back=lock%3Dclosed")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "Open this lock?", "worker", `name="opens" value="1"`, ">Open</button>")
	typed := form("closed", token, " ", "lock=closed")
	typed.Set("opens", "1")
	r, body = ask(t, web.New(web.Options{Locks: locks}), posted("/ui/revoke", typed))
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "reason has 0 characters", "Open this lock?")
	typed.Set("reason", "it was wrong")
	r, _ = ask(t, web.New(web.Options{Locks: locks}), posted("/ui/revoke", typed))
	wantStatus(t, r, http.StatusSeeOther)
	if at := r.Header.Get("Location"); at != "/ui/locks/closed" {
		t.Errorf("leads to %q", at)
	}
	_, body = getFrom(t, locks, "/ui/locks/closed")
	if strings.Contains(body, `id="closed"`) || strings.Contains(body, "Open the lock") {
		t.Error("it is still closed")
	}
	fx := setFixture{t, locks}
	id = lock.LeaseID{8}
	if _, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One("closed"), LeaseID: id, Holder: "worker", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := locks.Release(t.Context(), lock.Release{Locks: []string{"closed"}, LeaseID: id, Closed: lock.Closing{For: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	for role, may := range map[access.Role]bool{access.Lock: false, access.Admin: true} {
		_, body = fx.as(access.Key{Role: role}, httptest.NewRequest(http.MethodGet, "/ui/locks/closed", nil))
		if !strings.Contains(body, `id="closed"`) || strings.Contains(body, "Open the lock</button>") != may {
			t.Errorf("a key with the role %v is offered to open it: %t", role, !may)
		}
	}
}
