package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// A setFixture is a service in memory, in a bubble of package synctest.
type setFixture struct {
	*testing.T
	locks paddock.Service
}

// withSets calls test with a service. Calls that still wait at the end are cancelled.
func withSets(t *testing.T, test func(setFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(setFixture{t, memlock.New().Replica(1)}) })
}

// acquire acquires the locks for an hour, and returns the token of the first.
func (fx setFixture) acquire(holder string, names ...string) lock.Token {
	fx.Helper()
	g, err := fx.locks.Acquire(fx.Context(), lock.Acquire{Locks: members(lock.Exclusive, names...), Holder: holder, TTL: time.Hour})
	if err != nil {
		fx.Fatal(err)
	}
	return g.Token
}

// join acquires the locks for an hour together with other readers.
func (fx setFixture) join(holder string, names ...string) {
	fx.Helper()
	if _, err := fx.locks.Acquire(fx.Context(), lock.Acquire{Locks: members(lock.Shared, names...), Holder: holder, TTL: time.Hour}); err != nil {
		fx.Fatal(err)
	}
}

// wait waits for the locks until the test ends.
func (fx setFixture) wait(holder string, names ...string) {
	fx.Helper()
	a := lock.Acquire{Locks: members(lock.Exclusive, names...), Holder: holder, TTL: time.Hour, Wait: lock.MaxWait}
	ctx, leave := context.WithCancel(fx.Context())
	done := make(chan error)
	go func() {
		_, err := fx.locks.Acquire(ctx, a)
		done <- err
	}()
	synctest.Wait()
	fx.Cleanup(func() {
		leave()
		if err := <-done; err == nil {
			fx.Errorf("%s was granted the locks", holder)
		}
	})
}

func members(mode lock.Mode, names ...string) (set []lock.Member) {
	for _, name := range names {
		set = append(set, lock.Member{Name: name, Mode: mode})
	}
	return set
}

// page returns the page at the target.
func (fx setFixture) page(target string) string {
	fx.Helper()
	r, body := getFrom(fx.T, fx.locks, target)
	wantStatus(fx.T, r, http.StatusOK)
	return body
}

// revoke sends the form for the token of the lock, and returns the status.
func (fx setFixture) revoke(name string, token lock.Token) int {
	fx.Helper()
	r := httptest.NewRequest(http.MethodPost, "/ui/revoke", strings.NewReader(form(name, fmt.Sprint(token), "stuck", "").Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, _ := ask(fx.T, web.New(web.Options{Locks: fx.locks}), r)
	return answer.StatusCode
}

// linkTo returns the link of a lock's page to that of another lock.
func linkTo(name string) string {
	return fmt.Sprintf(`<a class="lock" href="/ui/locks/%[1]s">%[1]s</a>`, name)
}

func TestLeaseNamesTheOtherLocksOfItsSet(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.acquire("mover", "repo:a", "x", "y")
		fx.acquire("single", "z")
		wantText(fx.T, fx.page("/ui/locks/repo:a"), ">together with "+linkTo("x")+", "+linkTo("y")+"</div>")
		wantText(fx.T, fx.page("/ui/locks/y?back=prefix%3Dr%26cursor%3Dc"),
			`>together with <a class="lock" href="/ui/locks/repo:a?back=prefix%3Dr">repo:a</a>, <a class="lock" href="/ui/locks/x?back=prefix%3Dr">x</a></div>`)
		wantNoText(fx.T, fx.page("/ui/locks/z"), "together")
	})
}

func TestListMarksSets(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.acquire("mover", "a", "b", "c")
		fx.acquire("single", "d")
		body := fx.page("/ui/")
		if n := strings.Count(body, "<small>set of 3 locks</small>"); n != 3 {
			t.Errorf("%d leases are marked, want 3:\n%s", n, body)
		}
		wantNoText(fx.T, body, "together with")
	})
}

func TestWaiterOfASetSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.acquire("holder", "b")
		fx.wait("mover", "a", "b", "c")
		fx.wait("later", "a")
		free, held := fx.page("/ui/locks/a"), fx.page("/ui/locks/b")
		wantText(fx.T, free, `<span class="pill">free</span>`, "<bdi>holder</bdi></a> on "+linkTo("b")+" (token 1", ">together with "+linkTo("b")+", "+linkTo("c")+"</div>",
			`<span class="line">1 ahead</span><span class="line">held by <a class="by" href="/ui/holder?holder=holder"><bdi>holder</bdi></a> on `+linkTo("b"))
		wantNoText(fx.T, free, "it is next")
		wantText(fx.T, held, `<bdi>holder</bdi></a> (token 1, ends in `, ">together with "+linkTo("a")+", "+linkTo("c")+"</div>")
		wantNoText(fx.T, held, "<bdi>holder</bdi> on")
		wantText(fx.T, fx.page("/ui/?prefix=a"), `class="number none"></td>`, `2<span class="unseen"> waiting for a</span>`)
	})
}

func TestLaterWaiterOfASetNamesItsLocks(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.acquire("holder", "a")
		fx.wait("first", "a")
		fx.wait("mover", "a", "b")
		body := fx.page("/ui/locks/a")
		wantText(fx.T, body, `<span class="line">1 ahead</span>`, `<span class="line">held by <a class="by" href="/ui/holder?holder=holder"><bdi>holder</bdi>`, ">together with "+linkTo("b")+"</div>")
		wantNoText(fx.T, body, "other locks")
	})
}

// longSet returns the names of the largest set with the longest names.
func longSet() (names []string) {
	for i := range lock.MaxSetSize {
		names = append(names, fmt.Sprintf("%0*d", lock.MaxNameLength, i))
	}
	return names
}

func TestLargeSetIsFolded(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		names := longSet()
		token := fx.acquire("mover", names...)
		fx.wait("next", names...)
		body := fx.page("/ui/locks/" + names[1])
		if n := strings.Count(body, `">and 28 more</summary><a class="lock" href="/ui/locks/`); n != 2 {
			t.Errorf("%d sets are folded, want those of the lease and the waiter", n)
		}
		if n := strings.Count(body, `and <span class="past">28 more</span>`); n != 2 {
			t.Errorf("%d sets are cut, want those of the two events", n)
		}
		for i, name := range slices.Delete(slices.Clone(names), 1, 2) {
			want := 2
			if i < 3 {
				want = 4
			}
			if n := strings.Count(body, linkTo(name)); n != want {
				t.Errorf("%d links to %s, want %d", n, name, want)
			}
		}
		wantNoText(fx.T, body, linkTo(names[1]))
		wantText(fx.T, fx.page(fmt.Sprintf("/ui/revoke?name=%s&token=%d", names[1], token)), "Revoke the leases of all 32 locks?", names[0], names[31])
	})
}

func TestRevokingALeaseOfASet(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		token := fx.acquire("mover", "a", "repo:b", "c")
		for _, target := range []string{"/ui/", "/ui/locks/a"} { // the script confirms in a dialog, which does not know the set
			wantNoText(fx.T, fx.page(target), "data-revoke")
		}
		body := fx.page(fmt.Sprintf("/ui/revoke?name=a&token=%d", token))
		wantText(fx.T, body, "Revoke the leases of all 3 locks?", `<dt>Also ends</dt><dd class="lock">c, repo:b</dd>`,
			"This lease is one of a set of 3 locks.", "Revoking it ends the whole set", "The locks can be granted at once", "the locks are granted to the next waiters")
		if status := fx.revoke("a", token); status != http.StatusSeeOther {
			t.Errorf("status %d", status)
		}
		for _, name := range []string{"a", "repo:b", "c"} {
			wantText(fx.T, fx.page("/ui/locks/"+name), "No holders.", `<span class="pill revoked">revoked</span>`)
		}
	})
}

func TestRevokingALeaseAloneNamesNoSet(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewBusyService(), "/ui/revoke?name=deploy:production&token=4")
	wantText(t, body, "Revoke this lease?", "The lock can be granted at once", "the lock is granted to the next waiter")
	wantNoText(t, body, "Also ends", "set of")
}

func TestRevokingSharedLeasesOfSets(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.join("one", "a", "c")
		fx.join("two", "a", "b", "c")
		fx.join("three", "a")
		body := fx.page("/ui/locks/a")
		page, dialog, _ := strings.Cut(body, "<dialog")
		wantText(fx.T, page, "Revoke all 3")
		if n := len(formsOf(page)); n != 1 {
			t.Errorf("%d forms are confirmed in the dialog, want that of the lease without a set", n)
		}
		wantNoText(fx.T, dialog, "Also ends")
		body = fx.page("/ui/revoke?name=a&token=1")
		wantText(fx.T, body, "Revoke all 3 leases?", `<dt>Also ends</dt><dd class="lock">b, c</dd>`, "Some of these leases are parts of sets.")
	})
}
