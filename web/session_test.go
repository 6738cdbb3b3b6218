package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// A sessionFixture is a service in memory with a session, in a bubble whose time begins at the start of the year 2000.
type sessionFixture struct {
	setFixture
	id   lock.SessionID
	path string // of the session's page
}

// inSession calls test with a session that has a lease of billing:a, a permit of gpu:pool and a place in the queue of
// ops:deploy. Its TTL is 30 s, and its grace 10 s.
func inSession(t *testing.T, o lock.OpenSession, test func(sessionFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := sessionFixture{setFixture: setFixture{t, memlock.New().Replica(1)}, id: lock.SessionID(uuid.New())}
		o.ID, o.TTL, o.Grace = fx.id, 30*time.Second, 10*time.Second
		if _, err := fx.locks.OpenSession(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		fx.path = "/ui/sessions/" + fx.id.Ref().String()
		fx.acquire(lock.Acquire{Locks: lock.One("billing:a"), Holder: "h", SessionID: fx.id})
		fx.acquire(lock.Acquire{Locks: []lock.Member{{Name: "gpu:pool", Mode: lock.Permit, Capacity: 2}}, Holder: "h", SessionID: fx.id})
		fx.acquire(lock.Acquire{Locks: lock.One("ops:deploy"), Holder: "someone else", TTL: time.Hour})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			if _, err := fx.locks.Acquire(ctx, lock.Acquire{Locks: lock.One("ops:deploy"), Holder: "h", SessionID: fx.id, Wait: lock.MaxWait}); err == nil {
				t.Error("the waiter was granted the lock")
			}
		}()
		synctest.Wait()
		test(fx)
	})
}

func (fx sessionFixture) acquire(a lock.Acquire) {
	fx.Helper()
	if _, err := fx.locks.Acquire(fx.Context(), a); err != nil {
		fx.Fatal(err)
	}
}

func (fx sessionFixture) revoke(reason string) {
	fx.Helper()
	if _, err := fx.locks.RevokeSession(lock.WithCaller(fx.Context(), lock.Caller{Name: "ops <anna>"}), lock.RevokeSession{Ref: fx.id.Ref(), Reason: reason}); err != nil {
		fx.Fatal(err)
	}
}

func (fx sessionFixture) close() {
	fx.Helper()
	if err := fx.locks.CloseSession(fx.Context(), lock.CloseSession{ID: fx.id}); err != nil {
		fx.Fatal(err)
	}
}

func (fx setFixture) get(target string) (*http.Response, string) {
	fx.Helper()
	return getFrom(fx.T, fx.locks, target)
}

func getFrom(t *testing.T, locks paddock.Service, target string) (*http.Response, string) {
	t.Helper()
	return ask(t, web.New(web.Options{Locks: locks}), httptest.NewRequest(http.MethodGet, target, nil))
}

// as sends the request with a key in its context, through a Guard.
func (fx setFixture) as(k access.Key, r *http.Request) (*http.Response, string) {
	fx.Helper()
	k.ID, k.Name = "k", "n"
	h := web.New(web.Options{Locks: access.Guard(fx.locks, access.Limits{})})
	return ask(fx.T, h, r.WithContext(access.WithKey(r.Context(), k)))
}

// wantNoText fails if the body contains one of the texts.
func wantNoText(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q:\n%s", text, body)
		}
	}
}

// TestALeaseNamesItsSession, by the public name, and another one none.
func TestALeaseNamesItsSession(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		fx.acquire(lock.Acquire{Locks: []lock.Member{{Name: "gpu:pool", Mode: lock.Permit, Capacity: 2}}, Holder: "worker-2"})
		for _, path := range []string{"/ui/locks/gpu:pool", "/ui/?prefix=gpu"} {
			r, body := fx.get(path)
			wantStatus(fx.T, r, http.StatusOK)
			wantText(fx.T, body, "worker-2", `<small><a href="`+fx.path+`" title="session `+fx.id.Ref().String()+`"`)
			leases, _, _ := strings.Cut(body, `aria-labelledby="events"`)
			if n := strings.Count(leases, "/ui/sessions/"); n != 1 {
				t.Errorf("%s names %d sessions of leases, want 1", path, n)
			}
			wantNoText(fx.T, body, uuid.UUID(fx.id).String())
		}
	})
}

func TestSessionPageShowsTheSession(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1", Metadata: json.RawMessage(`{"host":"db-3"}`)}, func(fx sessionFixture) {
		time.Sleep(8 * time.Second)
		r, body := fx.get(fx.path)
		wantStatus(fx.T, r, http.StatusOK)
		wantText(fx.T, body, "<h1 class=\"lock\">Session "+fx.id.Ref().String()+"</h1>", `<a href="/ui/sessions">Sessions</a></p>`,
			`<dl class="facts held">`, `<span class="pill open">open</span>`, "<bdi>worker-1</bdi>", ">00:00:08</time> <span data-zone>UTC",
			`<small><span data-age-ms="8000">8 s</span> ago</small>`, `<dd><b data-left-ms="22000">22 s</b></dd>`, "<dt>TTL</dt><dd>30 s<small>then 10 s grace</small></dd>",
			"&#34;host&#34;: &#34;db-3&#34;", "<dt>Leases</dt><dd>2</dd>", "<dt>Places in queues</dt><dd>1</dd>",
			`<a href="/ui/locks/billing:a">billing:<wbr>a<wbr></a>`, "<div>token 1</div>",
			`<a href="/ui/locks/gpu:pool">gpu:<wbr>pool<wbr></a>`, "<div>token 2<small>slot 1</small></div>",
			`<a href="/ui/locks/ops:deploy">ops:<wbr>deploy<wbr></a>`, "<div>wait</div>",
			`<form method="post" action="`+fx.path+`">`, "Revoke this session", "This does not stop the holder")
		if n := strings.Count(body, `scope="row"`); n != 3 {
			t.Errorf("%d leases and places, want 3", n)
		}
		wantNoText(fx.T, body, uuid.UUID(fx.id).String(), "<script>", "Ended")
	})
}

func TestSessionPageShowsTheState(t *testing.T) {
	t.Parallel()
	const shown = `<span class="pill %[1]s">%[1]s</span>`
	for state, c := range map[string]struct {
		reach func(sessionFixture)
		texts []string
		form  bool
	}{
		"open":  {func(sessionFixture) {}, []string{`<b data-left-ms="30000">30 s</b>`, `<small><span data-age-ms="0">0 s</span> ago</small>`}, true},
		"grace": {func(sessionFixture) { time.Sleep(34 * time.Second) }, []string{`<dl class="facts grace">`, `<b class="left">ended</b><small>grace: <span data-left-ms="6000">6 s</span></small>`, `<small><span data-age-ms="34000">34 s</span> ago</small>`, "<dt>Leases</dt><dd>2</dd>"}, true},
		"expired": {func(sessionFixture) { time.Sleep(41 * time.Second) }, []string{`<dl class="facts free">`,
			`<dt>Ended, <span data-zone>UTC</span></dt><dd><time datetime="2000-01-01T00:00:40Z">`, "No lease and no place."}, false},
		"closed":  {sessionFixture.close, []string{"<dt>Ended, <span data-zone>UTC</span></dt>", "No lease and no place."}, false},
		"revoked": {func(fx sessionFixture) { fx.revoke("host <gone>") }, []string{"<dt>Reason</dt><dd><bdi>host &lt;gone&gt;</bdi></dd>", "<dt>Revoked by</dt><dd><bdi>ops &lt;anna&gt;</bdi></dd>", "No lease and no place."}, false},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
				c.reach(fx)
				r, body := fx.get(fx.path + "?revoked=1")
				wantStatus(fx.T, r, http.StatusOK)
				wantText(fx.T, body, append(c.texts, fmt.Sprintf(shown, state))...)
				if got := strings.Contains(body, "<textarea"); got != c.form {
					t.Errorf("the page has a form: %t, want %t", got, c.form)
				}
				if got := strings.Contains(body, "Revoked.</strong>"); got != (state == "revoked") {
					t.Errorf("the page says that the session was revoked: %t", got)
				}
			})
		})
	}
}

// TestHeartbeatIsNeverLater shortens the TTL, so that the end of the session does not tell when it was renewed.
func TestHeartbeatIsNeverLater(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		time.Sleep(time.Second)
		if _, err := fx.locks.RenewSession(fx.Context(), lock.RenewSession{ID: fx.id, TTL: 5500 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		_, body := fx.get(fx.path)
		wantText(fx.T, body, `<b data-left-ms="29000">29 s</b>`, `2000-01-01 00:00:01</time><small><span data-age-ms="0">0 s</span> ago</small>`, "<dt>TTL</dt><dd>5500 ms<small>")
	})
}

func TestTextOfASessionIsEscaped(t *testing.T) {
	t.Parallel()
	holder := strings.NewReplacer("\u2069", "", "\u202e", "").Replace(webtest.Hostile)
	o := lock.OpenSession{Holder: holder, Metadata: json.RawMessage(`{"x":"</pre><script>alert(3)</script>"}`)}
	inSession(t, o, func(fx sessionFixture) {
		_, list := fx.get("/ui/sessions")
		_, page := fx.get(fx.path)
		fx.revoke("<script>alert(4)</script>")
		_, revoked := fx.get(fx.path)
		wantText(fx.T, page, "&lt;/pre&gt;&lt;script&gt;alert(3)")
		wantText(fx.T, revoked, "<bdi>&lt;script&gt;alert(4)&lt;/script&gt;</bdi>")
		for _, body := range []string{list, page, revoked} {
			wantText(fx.T, body, "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;&#34;&gt;&lt;img src=x onerror=alert(2)&gt;&#39;gnorw</bdi>")
			wantNoText(fx.T, body, "<script>", "<img src=x", "</pre><script")
		}
		_, list = fx.get(`/ui/sessions?holder="><script>alert(5)</script>&cursor="><script>alert(6)</script>`)
		wantNoText(fx.T, list, "<script>")
	})
}

func TestUnknownSessions(t *testing.T) {
	t.Parallel()
	const secret = "7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44"
	for name, c := range map[string]struct {
		status int
		words  string
	}{
		"0000000000000001": {http.StatusNotFound, "There is no session of that name, or it ended long ago."},
		"7FFFFFFFFFFFFFFF": {http.StatusBadRequest, "16 hexadecimal digits"},
		secret:             {http.StatusBadRequest, "not its session_id"},
		"%3Cscript%3E":     {http.StatusBadRequest, "16 hexadecimal digits"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				r := httptest.NewRequest(method, "/ui/sessions/"+name, strings.NewReader("reason=r"))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				got, body := ask(t, web.New(web.Options{Locks: memlock.New().Replica(1)}), r)
				wantStatus(t, got, c.status)
				wantText(t, body, c.words, `role="alert"`, "<h1 class=\"lock\">No such session</h1>", `<a href="/ui/sessions">Sessions</a></p>`)
				wantNoText(t, body, "<textarea", "<dl", secret, "<script")
			})
		}
	}
}

func TestNamesThatTheKeyDoesNotCoverAreHidden(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		r, body := fx.as(access.Key{Role: access.Read, Prefixes: []string{"billing"}}, httptest.NewRequest(http.MethodGet, fx.path, nil))
		wantStatus(fx.T, r, http.StatusOK)
		wantText(fx.T, body, `<a href="/ui/locks/billing:a">`, "token 1", "<dd>2</dd>", `<p><a href="/ui/">Locks</a></p>`)
		if n := strings.Count(body, `<span class="past">(not covered)</span>`); n != 2 {
			t.Errorf("%d hidden names, want 2:\n%s", n, body)
		}
		wantNoText(fx.T, body, "gpu", "deploy", "token 2", "<div>wait</div>", `href="/ui/sessions"`)
	})
}

func TestManyLeasesAreCutOff(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		for i := range lock.MaxSessionLocks {
			fx.acquire(lock.Acquire{Locks: lock.One(fmt.Sprintf("many:%d", i)), Holder: "h", SessionID: fx.id})
		}
		for query, want := range map[string]struct {
			lines int
			more  string
		}{
			"":       {100, `<a href="` + fx.path + `?all=1#leases">and 903 more</a>`},
			"?all=1": {lock.MaxSessionLocks, "<p>and 3 more</p>"},
		} {
			_, body := fx.get(fx.path + query)
			wantText(fx.T, body, want.more)
			if n := strings.Count(body, `scope="row"`); n != want.lines {
				t.Errorf("%q: %d leases, want %d", query, n, want.lines)
			}
		}
	})
}
