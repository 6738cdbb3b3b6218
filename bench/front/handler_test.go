package front

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/bench/lease"
)

// A leaver is a store whose caller leaves during an acquire. It records the lease that is released.
type leaver struct {
	leave    func()
	released string
}

func (l *leaver) Acquire(context.Context, string, bool) (lease.Grant, error) {
	l.leave()
	return lease.Grant{ID: "mine", Token: 7}, nil
}

func (l *leaver) Renew(context.Context, string, string) error {
	return errors.New("no renewal is expected")
}

func (l *leaver) Release(ctx context.Context, name, id string) error {
	l.released = name + " " + id
	return ctx.Err()
}

func TestAGrantIsReleasedWhenTheCallerIsGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store, w := &leaver{leave: cancel}, httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/acquire", strings.NewReader(`{"name":"n","wait":true}`))
	if handler(store).ServeHTTP(w, r); w.Code == http.StatusCreated || store.released != "n mine" {
		t.Errorf("status %d; released: %q", w.Code, store.released)
	}
}
