package lock_test

import (
	"context"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestContextCarriesTheInnermostToken(t *testing.T) {
	t.Parallel()
	if got, ok := lock.TokenFrom(t.Context()); ok || got != 0 {
		t.Errorf("a context without a token carries %d", got)
	}
	outer := lock.WithToken(t.Context(), 7)
	inner, cancel := context.WithCancel(lock.WithToken(outer, 8))
	defer cancel()
	for want, ctx := range map[lock.Token]context.Context{7: outer, 8: inner} {
		if got, ok := lock.TokenFrom(ctx); !ok || got != want {
			t.Errorf("the context carries %d, want %d", got, want)
		}
	}
}
