package lock

import "context"

// A Caller says who made a call, as far as it is known. It contains no secret. The zero Caller is nobody: what time alone
// has done, or a call without a key and a trace.
type Caller struct {
	Name  string // of the API key; empty in a service without keys
	KeyID string // of the API key
	Trace string // the trace id of the call (W3C Trace Context): 32 hexadecimal digits; empty if it is not traced
}

type callerKey struct{}

// WithCaller returns a context for a call of the caller. Services record it in the events that the call causes.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of WithCaller, zero if there is none.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
