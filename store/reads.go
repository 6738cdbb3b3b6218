package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// Lock returns a lock, see paddock.Service.
func (s *Store) Lock(ctx context.Context, name string) (lock.Lock, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.Lock{}, err
	}
	r, err := s.readOne(ctx, row.Only(name))
	l := r.Lock()
	l.AddPolicy(&s.policy.Newest().Policy)
	if err == nil {
		err = s.readAbove(ctx, &l)
	}
	return l, err
}

// readOne reads the lock that is the only one in the range, without locking it. If it was never used, it has only a
// name.
func (s *Store) readOne(ctx context.Context, only row.Range) (r row.Reading, err error) {
	err = s.readHere(ctx, []string{only.Name()}, func(ctx context.Context) (err error) {
		r, err = only.ReadOne(ctx, s.db.Rest, s.db.Schema, s.db.Outage.AssumeAlive())
		return err
	})
	return r, err
}

// VerifyToken returns the status of a token, see paddock.Service.
//
// A lease that is past its end as it was read may have been renewed in time by a transaction whose commit is not
// visible yet, because it waits for a standby; or a reader may have joined it, with the same token. The lock is then
// read again with its row locked, and those of its sessions: that waits for the transaction, and nothing that was
// decided before the end is written after it.
func (s *Store) VerifyToken(ctx context.Context, v lock.Verify) (out lock.Verification, err error) {
	defer func() {
		s.db.Observer.Call(observe.Call{Op: observe.VerifyToken, Stale: out.Status == lock.Stale, Err: err})
	}()
	if v, err = v.Resolve(); err != nil {
		return lock.Verification{}, err
	}
	r, err := s.readOne(ctx, row.Only(v.Name))
	if err == nil && v.NeedsLockedRead(r.Record, r.Now) {
		r, err = s.readLocked(ctx, v.Name)
	}
	if err != nil {
		return lock.Verification{}, err
	}
	return v.Check(r.Record, r.Now), nil
}

// readLocked reads a lock with its row locked. It waits for the row as long as a batch does, a few times.
func (s *Store) readLocked(ctx context.Context, name string) (r row.Reading, err error) {
	err = s.readHere(ctx, []string{name}, func(ctx context.Context) error {
		conn, err := s.db.Rest.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		b := &pgx.Batch{}
		b.Queue(database.Begin)
		database.QueueSettings(b, database.RowTimeout)
		row.QueueFence(b, s.db.Schema, name, new(lock.Token))
		row.QueueSessionsOf(b, s.db.Schema, name)
		if err = conn.SendBatch(ctx, b).Close(); err == nil {
			r, err = row.Only(name).ReadOne(ctx, conn, s.db.Schema, 0)
		}
		database.Rollback(conn.Conn())
		return err
	})
	return r, err
}

// maxWaitedForToo is how many other locks are read to find what blocks the waiters of one.
const maxWaitedForToo = 64

// Queue returns the waiters of a lock, see paddock.Service.
func (s *Store) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	if err := lock.CheckName(name); err != nil {
		return lock.QueueInfo{}, err
	}
	only := row.Only(name)
	only.Queue = true
	var q lock.QueueInfo
	err := s.readHere(ctx, []string{name}, func(ctx context.Context) error {
		r, err := only.ReadOne(ctx, s.db.Rest, s.db.Schema, s.db.Outage.AssumeAlive())
		if err != nil {
			return err
		}
		others, err := s.waiters.Records(ctx, r.Record.WaitedForToo(r.Now, s.self, maxWaitedForToo))
		if err != nil {
			return err
		}
		_, paused := s.epochs.State()
		q = r.Record.QueueInfo(lock.View{
			Now: r.Now, Self: s.self, Locks: others, Policy: &s.policy.Newest().Policy, GrantsPausedUntil: r.Now.Add(paused),
		})
		q.Chain, err = s.waiters.Chain(ctx, r)
		return err
	})
	return q, err
}

// scanned is how many locks are read at once to find those that a query selects.
const scanned = 1000

// Locks returns a page of locks, see paddock.Service. The rules themselves filter it by state and holder, so a page may
// take several reads; SQL leaves out locks without leases and waiters where the query cannot select them.
func (s *Store) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	var page paddock.Page[lock.Lock]
	q, err := q.Resolve()
	if err != nil {
		return page, err
	}
	after, err := q.After()
	if err != nil {
		return page, err
	}
	selects := row.Prefixed(q.Prefix)
	selects.Limit = q.Limit + 1
	sorted := q.Sort != paddock.ByName
	selects.Active = q.Holder != "" || q.State == lock.Held || q.State == lock.InGrace || q.State == lock.Suspect || q.Contended || sorted
	if selects.Active || q.State != "" || q.Contains != "" {
		selects.Limit = scanned
	}
	err = s.db.Read(ctx, func(ctx context.Context) error {
		page.Items, page.Unreadable, selects.After = nil, nil, after
		for full := true; full && (sorted || len(page.Items) <= q.Limit); {
			all, err := selects.Read(ctx, s.db.Rest, s.db.Schema, 0)
			if err != nil {
				return err
			}
			for _, r := range all {
				l, room := r.Lock(), sorted || len(page.Items) <= q.Limit
				l.AddPolicy(&s.policy.Newest().Policy)
				switch {
				case r.Err != nil && room && strings.Contains(l.Name, q.Contains):
					bad := s.db.NoteMalformed(r.Err)
					page.Unreadable = append(page.Unreadable, paddock.Unreadable{Name: l.Name, Detail: bad.Detail})
				case r.Err == nil && room && q.Selects(l):
					page.Items = append(page.Items, l)
				}
				selects.After = r.Record.Name
			}
			if sorted {
				page.Items = q.Top(page.Items)
			}
			full = len(all) == selects.Limit
		}
		return nil
	})
	if len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		page.Next = paddock.LockCursor(page.Items[q.Limit-1].Name)
	}
	return page, err
}

// Watch returns a lock once it is not what was seen, see paddock.Service.
func (s *Store) Watch(ctx context.Context, q paddock.Watch) (lock.Lock, error) {
	return s.events.Watch(ctx, q, s.Lock)
}

// Events returns a page of events, see paddock.Service.
func (s *Store) Events(ctx context.Context, q paddock.EventQuery) (page paddock.Page[lock.Event], err error) {
	if len(q.Sessions) > 0 {
		return s.eventsAndEnds(ctx, q)
	}
	page, err = s.events.Page(ctx, q, nil)
	if err == nil && len(q.Names) == 1 { // the history of a lock goes where the lock goes
		err = s.readHere(ctx, q.Names, func(context.Context) error { return nil })
	}
	return page, err
}

// eventsAndEnds is Events for a query with sessions.
func (s *Store) eventsAndEnds(ctx context.Context, q paddock.EventQuery) (page paddock.Page[lock.Event], err error) {
	if q, err = q.Resolve(); err != nil {
		return page, err
	}
	ends, err := s.sessions.Watch(ctx, q.Sessions)
	if err != nil {
		return page, err
	}
	page, err = s.events.Page(ctx, q, ends.Ended)
	page.EndedSessions = ends.Stop()
	return page, err
}
