package web_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// A narrowed service shows only some names of sets, as to a key with prefixes.
type narrowed struct {
	lock.Service
	prefix string
}

func (n narrowed) hide(set []string) []string {
	set = slices.Clone(set)
	for i, name := range set {
		if !strings.HasPrefix(name, n.prefix) {
			set[i] = "(not covered)"
		}
	}
	return set
}

func (n narrowed) hideIn(leases []lock.LeaseInfo) {
	for i := range leases {
		leases[i].Set = n.hide(leases[i].Set)
	}
}

func (n narrowed) Lock(ctx context.Context, name string) (lock.Lock, error) {
	l, err := n.Service.Lock(ctx, name)
	n.hideIn(l.Leases)
	return l, err
}

func (n narrowed) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	q, err := n.Service.Queue(ctx, name)
	for i := range q.Waiters {
		w := &q.Waiters[i]
		w.Set = n.hide(w.Set)
		n.hideIn(w.Leases)
	}
	return q, err
}

func TestHiddenLocksOfSetsAreCounted(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		names         []string
		leases, ended string
	}{
		"one": {[]string{"my-a", "my-b", "secret-1"},
			"together with " + linkTo("my-b") + ` and <span class="past">(not covered)</span></div>`,
			`<dd class="lock">my-b and <span class="past">(not covered)</span></dd>`},
		"all": {[]string{"my-a", "secret-1", "secret-2"},
			`together with <span class="past">2 locks (not covered)</span></div>`,
			`<dd class="lock"><span class="past">2 locks (not covered)</span></dd>`},
		"more than are shown at once": {[]string{"my-a", "my-b", "my-c", "my-d", "my-e", "secret-1", "secret-2"},
			linkTo("my-d") + ` and <span class="past">2 locks (not covered)</span><details><summary`,
			`my-e and <span class="past">2 locks (not covered)</span></dd>`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			withSets(t, func(fx setFixture) {
				token := fx.acquire("mover", c.names...)
				fx.wait("next", c.names...)
				fx.locks = narrowed{fx.locks, "my-"}
				body := fx.page("/ui/locks/my-a")
				if n := strings.Count(body, c.leases); n != 2 {
					t.Errorf("the lease and the waiter do not show %q:\n%s", c.leases, body)
				}
				wantNoText(fx.T, body, "secret", "/ui/locks/%28", url.PathEscape("(not covered)"))
				ended := fx.page(fmt.Sprintf("/ui/revoke?name=my-a&token=%d", token))
				wantText(fx.T, ended, c.ended, fmt.Sprintf("one of a set of %d locks", len(c.names)))
				wantNoText(fx.T, ended, "secret")
			})
		})
	}
}

func TestHiddenLocksOfSeveralSetsAreNotCounted(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.join("one", "my-a", "secret-1")
		fx.join("two", "my-a", "secret-1", "secret-2")
		fx.locks = narrowed{fx.locks, "my-"}
		wantText(fx.T, fx.page("/ui/revoke?name=my-a&token=1"), `<dd class="lock"><span class="past">others (not covered)</span></dd>`)
	})
}

func TestNamesOfSetsAreEscaped(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		token := fx.acquire("mover", "a", "b")
		fx.wait("next", "a", "b")
		fx.locks = hostileSets{fx.locks}
		for _, target := range []string{"/ui/", "/ui/locks/a", fmt.Sprintf("/ui/revoke?name=a&token=%d", token)} {
			wantNoText(fx.T, fx.page(target), "alert(1)", "<img src=x")
		}
		wantText(fx.T, fx.page("/ui/locks/a"), "(not covered)")
	})
}

// hostileSets is a service whose sets have a name that no lock can have.
type hostileSets struct{ lock.Service }

func (h hostileSets) Lock(ctx context.Context, name string) (lock.Lock, error) {
	l, err := h.Service.Lock(ctx, name)
	for i := range l.Leases {
		l.Leases[i].Set = []string{"a", webtest.Hostile}
	}
	return l, err
}
