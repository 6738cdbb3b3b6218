package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/access"
)

// narrowed returns the page at the target for a key that covers only the lock my, and those below.
func (fx setFixture) narrowed(target string) string {
	fx.Helper()
	key := access.Key{Role: access.Admin, Prefixes: []string{"my"}}
	r, body := fx.as(key, httptest.NewRequest(http.MethodGet, target, nil))
	wantStatus(fx.T, r, http.StatusOK)
	return body
}

func TestHiddenLocksOfSetsAreCounted(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		names         []string
		leases, ended string
	}{
		"one": {[]string{"my:a", "my:b", "secret-1"},
			"together with " + linkTo("my:b") + ` and <span class="past">(not covered)</span></div>`,
			`<dd class="lock">my:b and <span class="past">(not covered)</span></dd>`},
		"all": {[]string{"my:a", "secret-1", "secret-2"},
			`together with <span class="past">2 locks (not covered)</span></div>`,
			`<dd class="lock"><span class="past">2 locks (not covered)</span></dd>`},
		"more than are shown at once": {[]string{"my:a", "my:b", "my:c", "my:d", "my:e", "secret-1", "secret-2"},
			linkTo("my:d") + ` and <span class="past">2 locks (not covered)</span><details><summary`,
			`my:e and <span class="past">2 locks (not covered)</span></dd>`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			withSets(t, func(fx setFixture) {
				token := fx.acquire("mover", c.names...)
				fx.wait("next", c.names...)
				body := fx.narrowed("/ui/locks/my:a")
				now, _, _ := strings.Cut(body, `aria-labelledby="events"`)
				if n := strings.Count(now, c.leases); n != 2 {
					t.Errorf("the lease and the waiter do not show %q:\n%s", c.leases, body)
				}
				wantNoText(fx.T, body, "secret", "/ui/locks/%28", url.PathEscape("(not covered)"))
				ended := fx.narrowed(fmt.Sprintf("/ui/revoke?name=my:a&token=%d", token))
				wantText(fx.T, ended, c.ended, fmt.Sprintf("one of a set of %d locks", len(c.names)))
				wantNoText(fx.T, ended, "secret")
			})
		})
	}
}

func TestHiddenLocksOfSeveralSetsAreNotCounted(t *testing.T) {
	t.Parallel()
	withSets(t, func(fx setFixture) {
		fx.join("one", "my:a", "secret-1")
		fx.join("two", "my:a", "secret-1", "secret-2")
		wantText(fx.T, fx.narrowed("/ui/revoke?name=my:a&token=1"), `<dd class="lock"><span class="past">others (not covered)</span></dd>`)
	})
}
