package front

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// A fake is a store that returns a given error and records the released lease.
type fake struct {
	err      error
	before   func() // called before it answers
	released string
}

func (f *fake) Acquire(context.Context, string, bool) (lease.Grant, error) {
	if f.before != nil {
		f.before()
	}
	return lease.Grant{ID: "mine", Token: 7}, f.err
}

func (f *fake) Renew(context.Context, string, string) error { return f.err }

func (f *fake) Release(ctx context.Context, name, id string) error {
	f.released = name + " " + id
	return errors.Join(f.err, ctx.Err())
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, body string
		err        error
		status     int
		answer     string
	}{
		"acquire":                {path: "/acquire", body: `{"name":"n","wait":true}`, status: 201, answer: `{"id":"mine","token":7}`},
		"acquire a held lock":    {path: "/acquire", body: `{"name":"n"}`, err: system.ErrHeld, status: 409, answer: "held"},
		"acquire with an error":  {path: "/acquire", body: `{"name":"n"}`, err: errors.New("no disk"), status: 500, answer: "no disk"},
		"renew":                  {path: "/renew", body: `{"name":"n","id":"mine"}`, status: 204},
		"release":                {path: "/release", body: `{"name":"n","id":"mine"}`, status: 204},
		"release an ended lease": {path: "/release", body: `{"name":"n","id":"mine"}`, err: lease.ErrLost, status: 409, answer: "the lease has ended"},
		"invalid JSON":           {path: "/release", body: `name`, status: 400, answer: "invalid character 'a' in literal null (expecting 'u')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := post(t.Context(), &fake{err: c.err}, c.path, c.body)
			if got := strings.TrimSpace(w.Body.String()); w.Code != c.status || got != c.answer {
				t.Errorf("got %d %q", w.Code, got)
			}
		})
	}
}

func TestAGrantIsReleasedWhenTheCallerIsGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store := &fake{before: cancel}
	if w := post(ctx, store, "/acquire", `{"name":"n","wait":true}`); w.Code == http.StatusCreated || store.released != "n mine" {
		t.Errorf("status %d; released: %q", w.Code, store.released)
	}
}

func post(ctx context.Context, store lease.Store, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler(store).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}
