package locktest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// memory is a lock.Service that forgets everything when the process ends: the
// rules of package lock behind one mutex.
type memory struct {
	mu     sync.Mutex
	bounds lock.Bounds
	token  lock.Token
	locks  map[string]lock.State
	ended  map[lock.LeaseRef]lock.Event
	events []lock.Event
	fenced map[string]lock.Fenced
}

func newMemory() (*memory, error) {
	bounds, err := lock.Bounds{}.Resolve()
	return &memory{
		bounds: bounds, locks: map[string]lock.State{},
		ended: map[lock.LeaseRef]lock.Event{}, fenced: map[string]lock.Fenced{},
	}, err
}

func (m *memory) state(name string) lock.State {
	if s, ok := m.locks[name]; ok {
		return s
	}
	return lock.State{Name: name}
}

// decide applies c and returns what it decided.
func (m *memory) decide(ctx context.Context, c lock.Command) (lock.Decision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return lock.Decision{}, &lock.Error{Code: lock.ErrUnavailable, Detail: "Too late.", Cause: ctx.Err()}
	}
	d := c.Apply(lock.View{
		Now: time.Now(), Locks: []lock.State{m.state(c.Names()[0])}, Ended: m.ended,
		Tokens: func() lock.Token { m.token++; return m.token },
	})
	if d.Changed {
		m.locks[d.Locks[0].Name] = d.Locks[0]
	}
	for _, e := range d.Events {
		e.ID = int64(len(m.events) + 1)
		m.events = append(m.events, e)
		if e.Ref != 0 {
			m.ended[e.Ref] = e
		}
	}
	return d, d.Err
}

func (m *memory) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	a, err := a.Resolve(m.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	if !utf8.Valid(a.Metadata) {
		return lock.Grant{}, lock.Invalid("metadata", "is not valid UTF-8")
	}
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	d, err := m.decide(ctx, a)
	return lock.Grant{Lease: d.Grant, Until: d.Grant.ExpiresAt, Replayed: d.Replay}, err
}

func (m *memory) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	r, err := r.Resolve(m.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	d, err := m.decide(ctx, r)
	return lock.Grant{Lease: d.Grant, Until: d.Grant.ExpiresAt}, err
}

func (m *memory) Release(ctx context.Context, r lock.Release) error {
	r, err := r.Resolve()
	if err != nil {
		return err
	}
	_, err = m.decide(ctx, r)
	return err
}

func (m *memory) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	r, err := r.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	d, err := m.decide(ctx, r)
	if err != nil {
		return lock.Lock{}, err
	}
	return d.Locks[0].Lock(time.Now()), nil
}

func (m *memory) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := cmp.Or(lock.CheckName(name), overdue(ctx)); err != nil {
		return lock.Lock{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state(name).Lock(time.Now()), nil
}

func overdue(ctx context.Context) error {
	if ctx.Err() != nil {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "Too late.", Cause: ctx.Err()}
	}
	return nil
}

func (m *memory) Locks(ctx context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	var page lock.Page[lock.Lock]
	q, err := q.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return page, err
	}
	after, ok := strings.CutPrefix(q.Cursor, "after ")
	if q.Cursor != "" && !ok {
		return page, lock.Invalid("cursor", "is not one that this service gave")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.locks {
		l := s.Lock(time.Now())
		has := slices.ContainsFunc(l.Leases, func(h lock.Holding) bool { return h.Holder == q.Holder })
		if strings.HasPrefix(s.Name, q.Prefix) && s.Name > after && (q.Phase == "" || l.Phase == q.Phase) && (q.Holder == "" || has) {
			page.Items = append(page.Items, l)
		}
	}
	slices.SortFunc(page.Items, func(a, b lock.Lock) int { return strings.Compare(a.Name, b.Name) })
	if len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		page.Next = "after " + page.Items[q.Limit-1].Name
	}
	return page, nil
}

func (m *memory) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Page[lock.Event]{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, err := strconv.ParseInt(cmp.Or(q.Cursor, "0"), 10, 64)
	if err != nil || last < 0 || last > int64(len(m.events)) {
		return lock.Page[lock.Event]{}, lock.Invalid("cursor", "is not one that this service gave")
	}
	var page lock.Page[lock.Event]
	for _, e := range m.events[last:] {
		if len(page.Items) == q.Limit {
			break
		}
		last = e.ID
		if (q.Name == "" || q.Name == e.Name) && strings.HasPrefix(e.Name, q.Prefix) {
			page.Items = append(page.Items, e)
		}
	}
	page.Next = strconv.FormatInt(last, 10)
	return page, nil
}

func (m *memory) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verdict, error) {
	v, err := v.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Verdict{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return v.Verdict(m.state(v.Name), time.Now()), nil
}

func (m *memory) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.Fenced, error) {
	w, err := w.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Fenced{}, err
	}
	if !utf8.Valid(w.Value) {
		return lock.Fenced{}, lock.Invalid("value", "is not valid UTF-8")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := w.Apply(m.fenced[w.Key], m.state(w.Lock).Token, time.Now())
	if err == nil {
		f.Value = slices.Clone(f.Value)
		m.fenced[w.Key] = f
	}
	return f, err
}

func (m *memory) ReadFenced(ctx context.Context, key string) (lock.Fenced, error) {
	_, err := lock.FencedWrite{Key: key, Lock: "x", Token: 1, Value: json.RawMessage(`1`)}.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Fenced{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.fenced[key]; ok {
		return f, nil
	}
	return lock.Fenced{}, &lock.Error{Code: lock.ErrNotFound, Detail: "Nothing was ever written under this key."}
}
