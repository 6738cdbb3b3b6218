package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Guard returns a Service that checks each call and passes it to inner. The call needs a key in its context, see
// [WithKey]. The key needs the role of the method and prefixes that cover every name in the call, and the call must be
// within the limits. Other calls are refused without calling inner, so that they do not reveal whether a name is in
// use. The codes are ErrKeyMissing, ErrKeyInvalid, ErrKeyExpired, ErrRoleMissing, ErrNameNotAllowed, ErrRateLimited
// and ErrTooManyWaiters.
func Guard(inner paddock.Service, l Limits) paddock.Service {
	return &guard{inner: inner, limits: l, meters: map[string]*usageMeter{}}
}

type guard struct {
	inner  paddock.Service
	limits Limits

	mu     sync.Mutex
	meters map[string]*usageMeter // by key id
}

func (g *guard) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return checkedCall(ctx, g, requirementOf(a),
		func(ctx context.Context) (lock.Grant, error) {
			grant, err := g.inner.Acquire(ctx, ofKey(ctx, a))
			return grant, hideRefusal(ctx, err)
		})
}

// ofKey returns a as a call of the key in the context: a task of another key with the same id is another one.
func ofKey(ctx context.Context, a lock.Acquire) lock.Acquire {
	if k, ok := KeyFrom(ctx); ok {
		a.TaskScope = k.ID
	}
	return a
}

func (g *guard) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return checkedCall(ctx, g, requirementOf(r),
		func(ctx context.Context) (lock.Grant, error) { return g.inner.Renew(ctx, r) })
}

func (g *guard) Release(ctx context.Context, r lock.Release) error {
	_, err := checkedCall(ctx, g, requirementOf(r),
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.Release(ctx, r) })
	return err
}

// Batch checks and counts each item like a single call, and passes on the items that the key allows.
func (g *guard) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if err := paddock.CheckBatch(len(items)); err != nil {
		return paddock.FailAll(len(items), err)
	}
	results := make([]paddock.Result, len(items))
	allowed, indexes := make([]lock.Command, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		if _, _, err := g.admit(ctx, requirementOf(item)); err != nil {
			results[i].Err = err
			continue
		}
		if a, ok := item.(lock.Acquire); ok {
			item = ofKey(ctx, a)
		}
		allowed, indexes = append(allowed, item), append(indexes, i)
	}
	if k, ok := KeyFrom(ctx); ok {
		ctx = byKey(ctx, k)
	}
	for i, r := range g.inner.Batch(ctx, allowed) {
		r.Err = hideRefusal(ctx, r.Err)
		results[indexes[i]] = r
	}
	return results
}

// requirementOf returns the requirement of an acquire, a renewal or a release. As an item of a batch inner refuses other
// commands, and acquires that wait.
func requirementOf(c lock.Command) requirement {
	if a, acquires := c.(lock.Acquire); acquires {
		return requirement{role: Lock, scopes: scopesOf(a.Names(), "locks/%d/name"), wait: a.Wait}
	}
	return requirement{role: Lock, scopes: scopesOf(c.Names(), "names/%d"), keepsLease: true}
}

// Revoke requires a key for this lock only, although it ends the leases of a whole set: otherwise an operator could
// not free the lock.
func (g *guard) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return hidden(ctx, hideLock)(checkedCall(ctx, g, requirement{role: Admin, scopes: singleName("name", r.Name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Revoke(ctx, r) }))
}

// byKey returns a context for a call of the key, whose events say so.
func byKey(ctx context.Context, k Key) context.Context {
	c := lock.CallerFrom(ctx)
	c.Name, c.KeyID = k.Name, k.ID
	return lock.WithCaller(ctx, c)
}

func (g *guard) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return hidden(ctx, hideLock)(checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", name)},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Lock(ctx, name) }))
}

func (g *guard) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	return hidden(ctx, hideLock)(checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", w.Name), wait: w.Wait},
		func(ctx context.Context) (lock.Lock, error) { return g.inner.Watch(ctx, w) }))
}

func (g *guard) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	return hidden(ctx, hideQueue)(checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", name)},
		func(ctx context.Context) (lock.QueueInfo, error) { return g.inner.Queue(ctx, name) }))
}

func (g *guard) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	return hidden(ctx, hidePage)(checkedCall(ctx, g, requirement{role: Read, scopes: namePrefix(q.Prefix)},
		func(ctx context.Context) (paddock.Page[lock.Lock], error) { return g.inner.Locks(ctx, q) }))
}

// Events needs a key that covers each of the names. A key that may read a session may wait for its end.
func (g *guard) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	scopes := scopesOf(q.Names, "locks/%d")
	if q.Prefix != "" || len(q.Names) == 0 && len(q.Sessions) == 0 {
		scopes = namePrefix(q.Prefix)
	}
	return hidden(ctx, hideEvents)(checkedCall(ctx, g, requirement{role: Read, scopes: scopes, wait: q.Wait},
		func(ctx context.Context) (paddock.Page[lock.Event], error) { return g.inner.Events(ctx, q) }))
}

func (g *guard) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("name", v.Name)},
		func(ctx context.Context) (lock.Verification, error) { return g.inner.VerifyToken(ctx, v) })
}

func (g *guard) ReportStale(ctx context.Context, r lock.ReportStale) (bool, error) {
	return checkedCall(ctx, g, requirement{role: Lock, scopes: singleName("name", r.Name)},
		func(ctx context.Context) (bool, error) { return g.inner.ReportStale(ctx, r) })
}

func (g *guard) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	scopes := append(singleName("key", w.Key), singleName("lock", w.Lock)...)
	return checkedCall(ctx, g, requirement{role: Lock, scopes: scopes},
		func(ctx context.Context) (lock.FencedValue, error) { return g.inner.WriteFenced(ctx, w) })
}

// ReadFenced refuses a value that was written under a lock that the key does not cover, because the answer has the
// lock's name.
func (g *guard) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: singleName("key", key)},
		func(ctx context.Context) (lock.FencedValue, error) {
			f, err := g.inner.ReadFenced(ctx, key)
			if k, ok := KeyFrom(ctx); err == nil && (!ok || !k.Covers(f.Lock)) {
				return lock.FencedValue{}, k.errNameNotAllowed(
					"covers the resource %s, but not the lock that guards it. Use a key for both", key)
			}
			return f, err
		})
}

// CheckAll returns an error unless the key in the context has the role for all names: ErrKeyMissing, ErrKeyInvalid,
// ErrKeyExpired, ErrRoleMissing or ErrNameNotAllowed. The call is not counted.
func CheckAll(ctx context.Context, role Role) error {
	k, err := keyOf(ctx)
	if err != nil {
		return err
	}
	return requirement{role: role, scopes: namePrefix("")}.check(k)
}

// A requirement is what a call requires of its key.
type requirement struct {
	role       Role
	scopes     []scope
	keepsLease bool          // the call renews or releases a lease
	wait       time.Duration // how long the call may wait
}

// checkedCall makes the call if its key allows it. If the key is revoked or expires while the call waits, the call
// fails with that error. ErrUnknownOutcome takes precedence: the caller must know that it may hold a lease.
func checkedCall[T any](
	ctx context.Context, g *guard, n requirement, call func(context.Context) (T, error),
) (none T, err error) {
	k, m, err := g.admit(ctx, n)
	if err != nil {
		return none, err
	}
	if n.role > Read {
		ctx = byKey(ctx, k)
	}
	if n.wait <= 0 {
		return call(ctx)
	}
	if !isContinued(ctx) {
		stopWaiting, err := m.startWaiting(k)
		if err != nil {
			return none, err
		}
		defer stopWaiting()
	}
	ctx, release := k.untilEnd(ctx)
	defer release()
	answer, err := call(ctx)
	ended := keyEnded{}
	if err != nil && !errors.Is(err, lock.ErrUnknownOutcome) && errors.As(context.Cause(ctx), &ended) {
		return none, ended.error
	}
	return answer, err
}

// admit counts the call and returns its key and meter, or an error if the key does not allow the call.
func (g *guard) admit(ctx context.Context, n requirement) (Key, *usageMeter, error) {
	k, err := keyOf(ctx)
	if err != nil {
		return k, nil, err
	}
	m := g.meter(k)
	if !isContinued(ctx) {
		if err := m.countCall(k, n.keepsLease); err != nil {
			return k, m, err
		}
	}
	return k, m, n.check(k)
}

// keyOf returns the key of ctx if it is valid.
func keyOf(ctx context.Context) (Key, error) {
	k, ok := KeyFrom(ctx)
	switch {
	case !ok:
		return k, &lock.Error{Code: lock.ErrKeyMissing,
			Detail: "This service requires an API key. Send Authorization: Bearer KEY."}
	case k.revocation != nil && k.revocation.Err() != nil:
		return k, errInvalid()
	case k.Expired(time.Now()):
		return k, k.errExpired()
	}
	return k, nil
}

// check returns an error unless the key meets the requirement.
func (n requirement) check(k Key) error {
	if k.Role < n.role {
		return k.errRoleMissing(n.role)
	}
	for _, s := range n.scopes {
		if err := s.check(k); err != nil {
			return err
		}
	}
	return nil
}

// keyEnded is the cause of a context that ended because its key was revoked or expired.
type keyEnded struct{ error }

// untilEnd returns a context that ends, with the cause keyEnded, when the key is revoked or expires.
func (k Key) untilEnd(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := []func(){func() { cancel(nil) }}
	if k.revocation != nil {
		stop := context.AfterFunc(k.revocation, func() { cancel(keyEnded{errInvalid()}) })
		release = append(release, func() { stop() })
	}
	if !k.ExpiresAt.IsZero() {
		timer := time.AfterFunc(time.Until(k.ExpiresAt), func() { cancel(keyEnded{k.errExpired()}) })
		release = append(release, func() { timer.Stop() })
	}
	return ctx, func() {
		for _, f := range release {
			f()
		}
	}
}

// meter returns the key's meter. It creates the meter at the first call.
func (g *guard) meter(k Key) *usageMeter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, known := g.meters[k.ID]; known {
		return m
	}
	m := newUsageMeter(g.limits)
	g.meters[k.ID] = m
	if k.revocation != nil {
		g.dropMeterAfter(k.revocation, k.ID, m)
	}
	return m
}

// dropMeterAfter drops the meter when revoked ends. It is separate from meter, where the closure would move every k to
// the heap.
func (g *guard) dropMeterAfter(revoked context.Context, id string, m *usageMeter) {
	context.AfterFunc(revoked, func() { g.dropMeter(id, m) })
}

func (g *guard) dropMeter(id string, m *usageMeter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.meters[id] == m {
		delete(g.meters, id)
	}
}

// A scope is one name, or all names with a prefix. The key must cover it.
type scope struct {
	field    string // of the request, for errors; empty: the request has none
	text     string
	isPrefix bool // text is a prefix
}

func singleName(field, name string) []scope { return []scope{{field: field, text: name}} }

func namePrefix(prefix string) []scope {
	return []scope{{field: "prefix", text: prefix, isPrefix: true}}
}

// allNames is the scope of a call that has no prefix parameter.
func allNames() []scope { return []scope{{isPrefix: true}} }

func (c scope) check(k Key) error {
	switch {
	case c.isPrefix && k.CoversAll(c.text), !c.isPrefix && k.Covers(c.text):
		return nil
	case c.text != "" && lock.CheckName(c.text) != nil:
		return lock.Invalid(c.field, "is not a valid name; use 1 to %d of A-Z a-z 0-9 . _ : @ -, with a letter or digit first",
			lock.MaxNameLength)
	case c.isPrefix && c.field == "":
		return k.errNameNotAllowed("does not cover all names. Use a key without prefixes")
	case c.isPrefix && c.field == "scope":
		return k.errNameNotAllowed("does not cover every name that begins with %s. Use a key that does", c.text)
	case c.isPrefix && c.text == "":
		return k.errNameNotAllowed("does not cover all names. Use %s", k.prefixHint())
	case c.isPrefix:
		return k.errNameNotAllowed("does not cover every name that begins with %s. Use %s", c.text, k.prefixHint())
	case c.field == "key":
		return k.errNameNotAllowed("does not cover the resource %s. Use a key that does", c.text)
	}
	return k.errNameNotAllowed("does not cover the lock %s. Use a key that does", c.text)
}

// prefixHint returns the prefix parameters that the key allows.
func (k Key) prefixHint() string {
	var hints []string
	for _, p := range k.Prefixes {
		hints = append(hints, "prefix="+p+":")
	}
	return strings.Join(hints, " or ")
}

func (k Key) errNameNotAllowed(format string, args ...any) error {
	prefixes := strings.Join(k.Prefixes, ", ")
	return &lock.Error{Code: lock.ErrNameNotAllowed,
		Detail: fmt.Sprintf("The API key %s is for names under %s. It ", k, prefixes) + fmt.Sprintf(format, args...) + "."}
}

func (k Key) errRoleMissing(needed Role) error {
	return &lock.Error{Code: lock.ErrRoleMissing, Detail: fmt.Sprintf(
		"The API key %s has the role %s, but this call needs the role %s. Use another key.", k, k.Role, needed)}
}
