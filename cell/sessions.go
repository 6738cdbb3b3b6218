package cell

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// isUnknownSession reports whether err says that a cell has no session with the id, or only registers it.
func isUnknownSession(err error) bool {
	e := (*lock.Error)(nil)
	return errors.As(err, &e) && (e.Code == lock.ErrSessionLost && e.Ended == 0 || e.Code == lock.ErrNotFound)
}

// maxSessionCells is how many sessions a sessionCells remembers.
const maxSessionCells = 100_000

// A sessionCells remembers in which cells sessions are used, so that a call asks them at once. It may be outdated. The
// zero value is ready for use.
type sessionCells struct {
	mu    sync.Mutex
	known map[lock.SessionRef]lock.CellSet
}

func (s *sessionCells) of(ref lock.SessionRef) lock.CellSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[ref]
}

func (s *sessionCells) learn(ref lock.SessionRef, cells lock.CellSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSessionCells {
		s.known = map[lock.SessionRef]lock.CellSet{}
	}
	s.known[ref] = cells
}

// A view is the cells of a Router as a call about a session sees them.
type view struct {
	*Router
	cells []placement.Cell
}

func (r *Router) view() view { return view{r, r.newest().Cells} }

// bit returns the set that has only the cell.
func (v view) bit(m *member) lock.CellSet {
	for _, c := range v.cells {
		if c.Name == m.name {
			return 1 << c.Position
		}
	}
	return 0
}

// home returns the cell in which the session is registered. It is the same whatever cells take groups.
func (v view) home(ref lock.SessionRef) *member {
	all := slices.Clone(v.cells)
	for i := range all {
		all[i].Takes = true
	}
	if m := v.byName[placement.Home(ref.String(), all)]; m != nil {
		return m
	}
	return v.Router.cells[0]
}

// in returns the members that are in the set, or ErrUnavailable if the Router lacks one.
func (v view) in(set lock.CellSet) (all []*member, err error) {
	for _, c := range v.cells {
		if !set.Has(c.Position) {
			continue
		}
		if m := v.byName[c.Name]; m != nil {
			all = append(all, m)
		} else {
			err = &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Detail: "The session is used in the cell " + c.Name +
				", which this replica was not given: add it to --cell."}
		}
	}
	return all, err
}

// everywhere calls do at all cells that use the session, and returns their replies; or those of the cells where it is
// registered, if no cell uses it. cellsOf returns the cells that a reply tells of. It asks at once the cells that it
// remembers and the home, then those that their replies add. It asks all cells if these do not know the session, or do
// not answer for awayTimeout.
func everywhere[T any](
	ctx context.Context, r *Router, ref lock.SessionRef, do func(context.Context, paddock.Service) (T, error), cellsOf func(T) lock.CellSet,
) ([]reply[T], error) {
	v := r.view()
	next, _ := v.in(r.sessions.of(ref))
	next = append(next, v.home(ref))
	asked := map[*member]*reply[T]{} // nil: not answered yet
	replies := make(chan reply[T], len(r.cells))
	away := time.NewTimer(awayTimeout)
	defer away.Stop()
	for waiting, late := 0, false; ; {
		for _, m := range next {
			if _, again := asked[m]; !again {
				asked[m] = nil
				waiting++
				go func() { replies <- ask(ctx, m, do) }()
			}
		}
		if waiting > 0 {
			select {
			case a := <-replies:
				asked[a.from], waiting = &a, waiting-1
			case <-away.C:
				late = true
			}
		}
		used, found := lock.CellSet(0), false
		for _, a := range asked {
			if a != nil && a.err == nil {
				used, found = used.With(cellsOf(a.of)), true
			}
		}
		used &^= lock.Registered
		users, err := v.in(used)
		unanswered := func(m *member) bool { return asked[m] == nil }
		switch next = users; {
		case err != nil:
			return nil, err
		case used != 0 && !slices.ContainsFunc(users, unanswered):
			r.sessions.learn(ref, used)
			return outcome(users, asked)
		case used != 0 || waiting > 0 && !late:
		case !found && len(asked) < len(r.cells):
			next, late = r.cells, false
			away.Reset(awayTimeout)
		case found || waiting == 0:
			return outcome(nil, asked)
		}
	}
}

// outcome returns the replies of the cells that use a session, or else all that are no errors. A cell that is to use
// the session and does not know it yet does not count. The error is one that says most of the session.
func outcome[T any](users []*member, asked map[*member]*reply[T]) (known []reply[T], err error) {
	for _, m := range users {
		if a := asked[m]; a.err == nil {
			known = append(known, *a)
		} else if !isUnknownSession(a.err) {
			err = worse(err, a.err)
		}
	}
	if err != nil || len(known) > 0 {
		return known, err
	}
	for _, a := range asked {
		if a != nil && a.err == nil {
			known = append(known, *a)
		} else if a != nil {
			err = worse(err, a.err)
		}
	}
	if len(known) > 0 {
		err = nil
	}
	return known, err
}

// worse returns the error that says more of a session: that it has ended, rather than that a cell may have done the call,
// rather than that it is away, rather than that it does not know the session.
func worse(a, b error) error {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case isUnknownSession(err):
			return 1
		case errors.Is(err, lock.ErrUnavailable):
			return 2
		case isAway(err):
			return 3
		}
		return 4
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// infos returns what the cells that use the session say of it, or those where it is registered.
func (r *Router) infos(ctx context.Context, ref lock.SessionRef) ([]reply[lock.SessionInfo], error) {
	return everywhere(ctx, r, ref, func(ctx context.Context, s paddock.Service) (lock.SessionInfo, error) { return s.Session(ctx, ref) },
		func(i lock.SessionInfo) lock.CellSet { return i.Cells })
}

// OpenSession registers the session at its home, or finds it, see paddock.Service. If the home is away, it is
// registered in another cell.
func (r *Router) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	var found []reply[lock.SessionInfo]
	o.Cells = lock.Registered
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	} else if infos, err := r.infos(ctx, o.ID.Ref()); err == nil {
		found = infos
	} else if !isUnknownSession(err) && !isAway(err) {
		return lock.SessionGrant{}, err
	}
	open := func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) { return s.OpenSession(ctx, o) }
	if len(found) > 0 {
		began := time.Now()
		replies := askAll(ctx, membersOf(found), open)
		for _, a := range replies {
			if a.err != nil {
				return lock.SessionGrant{}, a.err
			}
		}
		return earliest(began, replies), nil
	}
	home := r.view().home(o.ID.Ref())
	first := askBounded(ctx, home, 0, open)
	for _, m := range r.cells {
		if !errors.Is(first.err, lock.ErrUnavailable) || ctx.Err() != nil {
			break
		}
		if m != home {
			first = askBounded(ctx, m, 0, open)
		}
	}
	return first.of, first.err
}

func membersOf[T any](replies []reply[T]) (all []*member) {
	for _, a := range replies {
		all = append(all, a.from)
	}
	return all
}

// earliest returns the grant with the earliest end. It ends no later than a TTL after began, when no cell was asked
// yet: a cell to which the session moves with a group meanwhile counts from then on.
func earliest(began time.Time, replies []reply[lock.SessionGrant]) lock.SessionGrant {
	first := slices.MinFunc(replies, func(a, b reply[lock.SessionGrant]) int { return a.of.Until.Compare(b.of.Until) }).of
	first.RevokedLeases = 0
	for _, a := range replies {
		first.RevokedLeases += a.of.RevokedLeases
		first.Cells = first.Cells.With(a.of.Cells)
	}
	if end := began.Add(first.TTL); end.Before(first.Until) {
		first.ExpiresAt, first.Until = first.ExpiresAt.Add(end.Sub(first.Until)), end
	}
	return first
}

// RenewSession extends the session in all cells that use it, see paddock.Service. It does so again if one of them did not know
// the session: it may have moved there meanwhile, with the TTL from before.
func (r *Router) RenewSession(ctx context.Context, c lock.RenewSession) (lock.SessionGrant, error) {
	began, ref := time.Now(), c.ID.Ref()
	for again := false; ; again = true {
		replies, err := everywhere(ctx, r, ref,
			func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) { return s.RenewSession(ctx, c) },
			func(g lock.SessionGrant) lock.CellSet { return g.Cells })
		if err != nil {
			return lock.SessionGrant{}, err
		}
		if again || len(replies) >= bits.OnesCount64(uint64(r.sessions.of(ref))) {
			return earliest(began, replies), nil
		}
	}
}

// untilSessionEnds returns the grant, or err if that is an error. The leases of a session end at the earliest of its ends in
// the cells that use it. The cell that has granted knows its own end only, and that is later if the session was used
// there for the first time, or has moved there with a group: then it has its whole TTL there.
func (r *Router) untilSessionEnds(ctx context.Context, g lock.Grant, err error) (lock.Grant, error) {
	if err != nil || g.Session == 0 {
		return g, err
	}
	began := time.Now()
	infos, err := r.infos(ctx, g.Session)
	if err != nil {
		return lock.Grant{}, &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: retryAfter, Cause: err,
			Detail: "A cell that uses the session does not answer, so it is not known when the lease ends, if the session has not ended. Send the same call again."}
	}
	end := g.Until
	for _, a := range infos {
		left := a.of.Remaining
		switch {
		case a.of.Ended != 0:
			left = 0
		case a.of.ExpiresAt.Equal(g.ExpiresAt):
			continue // it is the end that the grant tells
		}
		if e := began.Add(left); e.Before(end) {
			end = e
		}
	}
	early := g.Until.Sub(end)
	g.Until, g.ExpiresAt, g.Leases = end, g.ExpiresAt.Add(-early), slices.Clone(g.Leases)
	for i := range g.Leases {
		g.Leases[i].ExpiresAt = g.Leases[i].ExpiresAt.Add(-early)
	}
	return g, nil
}

// introduce opens the session in a cell that does not know it, or only registers it. Before, all cells that use it
// learn of the new one.
func (r *Router) introduce(ctx context.Context, m *member, id lock.SessionID) error {
	infos, err := r.infos(ctx, id.Ref())
	switch {
	case isUnknownSession(err):
		return lock.NoSession()
	case err != nil:
		return err
	}
	v, i := r.view(), infos[0].of
	o := lock.OpenSession{ID: id, Holder: i.Holder, TTL: i.TTL, Grace: i.Grace, Metadata: i.Metadata}
	set, told := v.bit(m), lock.CellSet(0)
	tell := membersOf(infos)
	for _, a := range infos {
		set = set.With(a.of.Cells &^ lock.Registered)
	}
	for told != set {
		told, o.Cells = set, set
		for _, a := range askAll(ctx, slices.DeleteFunc(tell, func(o *member) bool { return o == m }),
			func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) {
				o := o
				if i.Cells < 0 {
					o.Cells |= lock.Registered
				}
				return s.OpenSession(ctx, o)
			}) {
			if a.err != nil {
				return a.err
			}
			set = set.With(a.of.Cells &^ lock.Registered)
		}
		if tell, err = v.in(set); err != nil {
			return err
		}
	}
	a := ask(ctx, m, func(ctx context.Context, s paddock.Service) (lock.SessionGrant, error) { return s.OpenSession(ctx, o) })
	if a.err == nil {
		r.sessions.learn(id.Ref(), set)
	}
	return a.err
}

// CloseSession ends the session in all cells, see paddock.Service.
func (r *Router) CloseSession(ctx context.Context, c lock.CloseSession) error {
	return r.endSession(ctx, c.ID.Ref(), func(ctx context.Context, s paddock.Service) (none, error) { return none{}, s.CloseSession(ctx, c) })
}

// RevokeSession ends the session in all cells on behalf of an operator, see paddock.Service.
func (r *Router) RevokeSession(ctx context.Context, c lock.RevokeSession) (lock.SessionInfo, error) {
	err := r.endSession(ctx, c.Ref, func(ctx context.Context, s paddock.Service) (none, error) {
		_, err := s.RevokeSession(ctx, c)
		return none{}, err
	})
	if err != nil {
		return lock.SessionInfo{}, err
	}
	return r.Session(ctx, c.Ref)
}

// endSession calls end at all cells that use the session. It does so again if one of them did not know the session: a
// group may be moving there with it.
func (r *Router) endSession(ctx context.Context, ref lock.SessionRef, end func(context.Context, paddock.Service) (none, error)) error {
	used := lock.CellSet(0)
	infos, err := r.infos(ctx, ref)
	if err != nil && !isUnknownSession(err) {
		return err
	}
	for _, a := range infos {
		used = used.With(a.of.Cells)
	}
	users, err := r.view().in(used &^ lock.Registered)
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		ended, err := everywhere(ctx, r, ref, end, func(none) lock.CellSet { return used })
		if errors.Is(err, lock.ErrUnavailable) && (again || len(ended) > 0) {
			return &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: retryAfter, Cause: err,
				Detail: "The session has ended in some of its cells, and not in all that it is used in. Send the same call again."}
		}
		if err != nil || again || len(ended) >= len(users) {
			return err
		}
	}
}

// Session returns the session as one for all cells, see paddock.Service.
func (r *Router) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	replies, err := r.infos(ctx, ref)
	if err != nil {
		return lock.SessionInfo{}, err
	}
	infos := make([]lock.SessionInfo, len(replies))
	for i, a := range replies {
		infos[i] = a.of
	}
	return together(infos), nil
}

// together returns one session of what several cells say of it. Cells that only register it do not count beside others.
func together(infos []lock.SessionInfo) lock.SessionInfo {
	slices.SortStableFunc(infos, func(a, b lock.SessionInfo) int {
		return cmp.Or(cmp.Compare(min(b.Cells, 0), min(a.Cells, 0)), cmp.Compare(min(b.Ended, 1), min(a.Ended, 1)), cmp.Compare(a.Remaining, b.Remaining))
	})
	all := infos[0]
	for _, i := range infos[1:] {
		if i.Cells < 0 && all.Cells >= 0 {
			break
		}
		all.Cells = all.Cells.With(i.Cells)
		all.Leases, all.Places = all.Leases+i.Leases, all.Places+i.Places
		all.Locks = append(slices.Clip(all.Locks), i.Locks...)
	}
	slices.SortFunc(all.Locks, lock.SessionLock.Compare)
	all.Locks = all.Locks[:min(len(all.Locks), lock.MaxSessionLocks)]
	return all
}
