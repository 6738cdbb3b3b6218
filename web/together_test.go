package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// TestViewersShareRenderings: ten viewers who fetch the page once a second cost as much as one rendering a second, and each
// sees what has happened before its request.
func TestViewersShareRenderings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fx := webtest.NewService()
		page := web.New(web.Options{Locks: fx})
		const seconds, viewers = 20, 10
		var viewing sync.WaitGroup
		began := time.Now()
		for round := range seconds {
			fx.Grant(lock.Acquire{Locks: lock.One(names[round]), Holder: "h", TTL: time.Hour}, 0)
			for i := range viewers {
				viewing.Go(func() {
					time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					w := httptest.NewRecorder()
					page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/", nil))
					if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "/ui/locks/"+names[round]) {
						t.Errorf("status %d, and a page without %s", w.Code, names[round])
					}
				})
			}
			time.Sleep(time.Second)
		}
		viewing.Wait()
		if n, most := fx.Lookups(), 2+int(time.Since(began)/time.Second); n > most {
			t.Errorf("%d renderings for %d requests, want %d at most", n, seconds*viewers, most)
		}
	})
}

// TestAPageIsRenderedTwiceAtOnce: for the browser, and for the script when the stream is in sync.
func TestAPageIsRenderedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page, began := web.New(web.Options{Locks: webtest.NewService()}), time.Now()
		for i, want := range []time.Duration{0, 0, time.Second, 2 * time.Second} {
			ask(t, page, httptest.NewRequest(http.MethodGet, "/ui/", nil))
			if passed := time.Since(began); passed != want {
				t.Errorf("rendering %d comes after %v, want %v", i, passed, want)
			}
		}
	})
}

// names are names of locks.
var names = strings.Fields("a b c d e f g h i j k l m n o p q r s t")

// TestViewersWithOtherKeysShareNothing, nor those of other URLs.
func TestViewersWithOtherKeysShareNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fx := webtest.NewService()
		fx.Grant(lock.Acquire{Locks: lock.One("billing:a"), Holder: "h", TTL: time.Hour}, 0)
		page := web.New(web.Options{Locks: fx})
		var viewing sync.WaitGroup
		for _, c := range []struct {
			path string
			key  access.Key
			want string
		}{
			{"/ui/", access.Key{ID: "a", Name: "anna", Role: access.Admin}, "anna"},
			{"/ui/", access.Key{ID: "a", Name: "bert", Role: access.Admin}, "bert"},
			{"/ui/", access.Key{ID: "a", Name: "anna", Role: access.Read, Prefixes: []string{"billing"}}, "This key is for"},
			{"/ui/?q=none", access.Key{ID: "a", Name: "anna", Role: access.Admin}, "No lock matches"},
		} {
			for range 3 {
				viewing.Go(func() {
					w := httptest.NewRecorder()
					r := httptest.NewRequest(http.MethodGet, c.path, nil)
					page.ServeHTTP(w, r.WithContext(access.WithKey(r.Context(), c.key)))
					if !strings.Contains(w.Body.String(), c.want) {
						t.Errorf("%s by %v shows no %q", c.path, c.key, c.want)
					}
				})
			}
		}
		viewing.Wait()
	})
}
