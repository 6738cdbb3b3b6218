package lock

import "context"

// tokenKey is where a context has its Token.
type tokenKey struct{}

// WithToken returns a context that carries the token of the lease under which the
// work is done, so that it reaches the place of the write. It hides one that ctx
// carries already: the innermost lock guards.
func WithToken(ctx context.Context, t Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, t)
}

// TokenFrom returns the token that ctx carries, false if it carries none.
func TokenFrom(ctx context.Context) (Token, bool) {
	t, ok := ctx.Value(tokenKey{}).(Token)
	return t, ok
}
