package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
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
		wantText(fx.T, body, "As of <time", "2000-01-01 00:00:34</time> UTC", `<a href="`+fx.path+`">`+fx.id.Ref().String()+"</a>",
			"<bdi>worker-1</bdi>", `<tr role="row" class="grace">`, `<span class="pill">grace</span>`, `<div>2</div>`, `<div>1</div>`,
			"<small>34 s ago</small>", "grace: 6 s", "<bdi>worker-2</bdi>", `<tr role="row" class="held">`, `<span class="pill">open</span>`,
			`<b class="left">1 min 0 s</b></div>`)
		_, body = fx.get("/ui/sessions?holder=worker-2")
		wantText(fx.T, body, `name="holder" value="worker-2"`, "<bdi>worker-2</bdi>", `href="/ui/sessions">Show all`)
		wantNoText(fx.T, body, "worker-1", "<script")
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

// TestPagesOfSessionsAreLinked goes forwards through all sessions of a holder, and back.
func TestPagesOfSessionsAreLinked(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	want := map[string]bool{}
	for i := range 2*lock.DefaultLimit + 1 {
		for _, holder := range []string{"h h", "other"} {
			s, err := locks.OpenSession(t.Context(), lock.OpenSession{Holder: holder, ID: lock.SessionID{byte(i), byte(i >> 8), holder[0]}, TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			want[s.ID.Ref().String()] = holder == "h h"
		}
	}
	name := regexp.MustCompile(`<a href="/ui/sessions/([0-9a-f]{16})">`)
	// walk follows the links, and returns the sessions of each page and the last page.
	walk := func(target, id string) (all [][]string, body string) {
		link := regexp.MustCompile(`id="` + id + `"[^>]* href="([^"]*)"`)
		for {
			_, body = getFrom(t, locks, target)
			var names []string
			for _, m := range name.FindAllStringSubmatch(body, -1) {
				names = append(names, m[1])
			}
			all = append(all, names)
			m := link.FindStringSubmatch(body)
			if m == nil {
				return all, body
			}
			target = html.UnescapeString(m[1])
			wantText(t, target, "/ui/sessions?", "holder=h+h")
		}
	}
	forwards, last := walk("/ui/sessions?holder=h+h", "next")
	if len(forwards) != 3 || len(forwards[0]) != lock.DefaultLimit || len(forwards[1]) != lock.DefaultLimit || len(forwards[2]) != 1 {
		t.Fatalf("the pages are %v", forwards)
	}
	for _, n := range slices.Concat(forwards...) {
		if !want[n] {
			t.Errorf("the session %s is of another holder, or is listed twice", n)
		}
		delete(want, n)
	}
	previous := regexp.MustCompile(`id="previous" rel="prev" href="([^"]*)"`).FindStringSubmatch(last)
	if previous == nil {
		t.Fatalf("the last page has no link to the one before:\n%s", last)
	}
	backwards, first := walk(html.UnescapeString(previous[1]), "previous")
	slices.Reverse(backwards)
	if !slices.EqualFunc(backwards, forwards[:2], slices.Equal) {
		t.Errorf("backwards the pages are %v, want %v", backwards, forwards[:2])
	}
	wantNoText(t, first, "First page", "Previous page")
	wantText(t, last, `id="first" href="/ui/sessions?holder=h&#43;h"`)
}

// brokenSessions fails all calls about sessions.
type brokenSessions struct {
	lock.Service
	fault error
}

func (b brokenSessions) Session(context.Context, lock.SessionRef) (lock.SessionInfo, error) {
	return lock.SessionInfo{}, b.fault
}

func (b brokenSessions) Sessions(context.Context, lock.SessionQuery) (lock.Page[lock.SessionInfo], error) {
	return lock.Page[lock.SessionInfo]{}, b.fault
}

func TestProblemsOfSessionsAreShown(t *testing.T) {
	t.Parallel()
	r, body := getFrom(t, memlock.New().Replica(1), "/ui/sessions?holder=kept&cursor=zz")
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "cursor is invalid", `role="alert"`, `value="kept"`)
	for _, path := range []string{"/ui/sessions", "/ui/sessions/0000000000000001"} {
		fx := brokenSessions{webtest.NewService(), &lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away.", Cause: errors.New("secret of the machine")}}
		r, body = getFrom(t, fx, path)
		wantStatus(t, r, http.StatusServiceUnavailable)
		wantText(t, body, "The database is away.", `role="alert"`, "Session")
		wantNoText(t, body, "No such session", "No open session", "secret of the machine")
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
				if strings.Contains(body, "worker-1") != listed || strings.Contains(body, `role="alert"`) == listed {
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
