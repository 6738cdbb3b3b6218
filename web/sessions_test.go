package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
		time.Sleep(34 * time.Second)
		if _, err := fx.locks.OpenSession(fx.Context(), lock.OpenSession{Holder: "worker-2", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		r, body := fx.get("/ui/sessions")
		wantStatus(fx.T, r, http.StatusOK)
		wantText(fx.T, body, "As of </span><time", ">00:00:34</time> <span data-zone>UTC", `<a href="`+fx.path+`" data-key="page `+fx.id.Ref().String()+`">`+fx.id.Ref().String()+"</a>",
			"<bdi>worker-1</bdi>", `<tr role="row" class="grace" data-key="session `, `<span class="pill">grace</span>`, `<div>2</div>`, `<div>1</div>`,
			`<small><span data-age-ms="34000">34 s</span> ago</small>`, `grace: <span data-left-ms="6000">6 s`, "<bdi>worker-2</bdi>", `<tr role="row" class="held" data-key="session `, `<span class="pill">open</span>`,
			`<b class="left" data-left-ms="60000">1 min 0 s</b></div>`)
		_, body = fx.get("/ui/sessions?holder=worker-2")
		wantText(fx.T, body, `name="holder" value="worker-2"`, "<bdi>worker-2</bdi>", `href="/ui/sessions">Show all`)
		wantNoText(fx.T, body, "worker-1", "<script>")
		fx.close()
		_, body = fx.get("/ui/sessions")
		wantText(fx.T, body, "worker-2")
		wantNoText(fx.T, body, "worker-1")
	})
}

func TestEmptyListsOfSessions(t *testing.T) {
	t.Parallel()
	for query, texts := range map[string][]string{
		"":                           {"No open session."},
		"?holder=%3Cb%3E":            {"No session matches.", "“<bdi>&lt;b&gt;</bdi>”", "Show all"},
		"?cursor=7fffffffffffffff":   {"There are no more sessions.", `href="/ui/sessions">First page`},
		"?unknown=1&refresh=5&all=1": {"No open session."},
	} {
		r, body := getFrom(t, memlock.New().Replica(1), "/ui/sessions"+query)
		wantStatus(t, r, http.StatusOK)
		wantText(t, body, texts...)
	}
}

// TestPagesOfSessionsAreLinked as those of locks are, with the holder.
func TestPagesOfSessionsAreLinked(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	for i := range paddock.DefaultLimit + 1 {
		for _, holder := range []string{"h h", "other"} {
			if _, err := locks.OpenSession(t.Context(), lock.OpenSession{Holder: holder, ID: lock.SessionID{byte(i), holder[0]}, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := func(body, id string) (target, next string) {
		t.Helper()
		m := regexp.MustCompile(`id="` + id + `"[^>]* href="([^"]*)"`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("the page has no link %s:\n%s", id, body)
		}
		target = html.UnescapeString(m[1])
		_, next = getFrom(t, locks, target)
		return target, next
	}
	_, first := getFrom(t, locks, "/ui/sessions?holder=h+h")
	target, last := follow(first, "next")
	wantText(t, target, "/ui/sessions?", "holder=h+h")
	for body, want := range map[string]int{first: paddock.DefaultLimit, last: 1} {
		if n := strings.Count(body, `<a href="/ui/sessions/`); n != want || strings.Contains(body, "<bdi>other</bdi>") {
			t.Errorf("%d sessions, want %d of one holder:\n%s", n, want, body)
		}
	}
	wantText(t, last, `id="first" href="/ui/sessions?holder=h&#43;h"`)
	if _, again := follow(last, "previous"); strings.Count(again, `<a href="/ui/sessions/`) != paddock.DefaultLimit {
		t.Errorf("the page before the last is not the first:\n%s", again)
	}
}

// TestListOfSessionsNeedsAKeyForAllNames, and pages do not link to it for others.
func TestListOfSessionsNeedsAKeyForAllNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key    access.Key
		status int
	}{
		{access.Key{Role: access.Read}, http.StatusOK},
		{access.Key{Role: access.Admin, Prefixes: []string{"billing"}}, http.StatusForbidden},
	} {
		t.Run(fmt.Sprint(c.key.Prefixes), func(t *testing.T) {
			t.Parallel()
			inSession(t, lock.OpenSession{Holder: "worker-1"}, func(fx sessionFixture) {
				r, body := fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/sessions", nil))
				wantStatus(fx.T, r, c.status)
				listed := c.status == http.StatusOK
				if strings.Contains(body, "worker-1") != listed || strings.Contains(body, `role="alert" tabindex`) == listed {
					t.Errorf("the sessions are listed: %t, want %t:\n%s", !listed, listed, body)
				}
				_, body = fx.as(c.key, httptest.NewRequest(http.MethodGet, "/ui/locks/billing:a", nil))
				if strings.Contains(body, `<a href="/ui/sessions">Sessions</a>`) != listed {
					t.Errorf("the page of a lock links to the list: %t, want %t", !listed, listed)
				}
			})
		})
	}
}
