package lock

import (
	"context"
)

// tokenKey is the context key of a Token.
type tokenKey struct{}

// WithToken returns a context that carries the token of the lease under which the work runs. Code that writes gets it
// with TokenFrom. It replaces a token that ctx carries already.
func WithToken(ctx context.Context, t Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, t)
}

// TokenFrom returns the token that ctx carries, false if it carries none.
func TokenFrom(ctx context.Context) (Token, bool) {
	t, ok := ctx.Value(tokenKey{}).(Token)
	return t, ok
}

type taskKey struct{}

// WithTask returns a context for work of the task. TaskFrom returns it.
func WithTask(ctx context.Context, t TaskID) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// TaskFrom returns the task of WithTask, empty if there is none.
func TaskFrom(ctx context.Context) TaskID {
	t, _ := ctx.Value(taskKey{}).(TaskID)
	return t
}
