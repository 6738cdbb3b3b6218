package sessions

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

//go:embed sql/*.sql
var files embed.FS

var (
	sqlDue   = database.Statement(files, "due")
	sqlNext  = database.Statement(files, "next")
	sqlPage  = database.Statement(files, "page")
	sqlClear = database.Statement(files, "clear")
	sqlPrune = database.Statement(files, "prune")
)

// A Submit decides commands, and returns what came of each, or what it was refused with.
type Submit func(context.Context, []lock.Command) ([]*row.Outcome, []error)

// A Keeper keeps sessions. Make one with New. Its methods are safe for concurrent use.
type Keeper struct {
	db     *database.DB
	epochs *epoch.Monitor
	submit Submit
	wake   chan struct{} // has a value when a session may end earlier than is known
	limits limiter
	// watches are the calls that wait for the end of sessions.
	watches watches
	locked  sync.Map // the SessionRefs of sessions whose rows were locked when they were last to be changed
}

// New returns a Keeper. Run ends the leases of sessions.
func New(db *database.DB, epochs *epoch.Monitor, submit Submit) *Keeper {
	return &Keeper{db: db, epochs: epochs, submit: submit, wake: make(chan struct{}, 1)}
}

// A Changed is a session after a change, as it was at Now.
type Changed struct {
	lock.Session
	Now    time.Time
	Began  time.Time // on this process's clock; no later than Now
	Opened bool      // by this change
}

// Until returns the instant of this process's clock at which the session expires, or an earlier one.
func (c Changed) Until() time.Time { return c.Began.Add(c.ExpiresAt.Sub(c.Now)) }

// Change decides c and writes the session. The error is one of [epoch.Monitor.Transact].
func (k *Keeper) Change(ctx context.Context, c lock.SessionChange) (Changed, error) {
	for {
		out, lost, err := k.attempt(ctx, c)
		k.note(c.Session(), err)
		if err != nil || !lost {
			return out, err
		}
	}
}

// note notes whether the session's row was locked when it was to be changed.
func (k *Keeper) note(ref lock.SessionRef, err error) {
	if err != nil && !errors.As(err, new(*lock.Error)) && database.EffectOf(err) == database.Blocked {
		k.locked.Store(ref, nil)
	} else {
		k.locked.Delete(ref)
	}
}

// IsLocked reports whether another connection had the session's row locked for long when it was last to be changed.
func (k *Keeper) IsLocked(ref lock.SessionRef) bool {
	_, locked := k.locked.Load(ref)
	return locked
}

// attempt changes the session once. lost says that another call has opened the session at the same time, so nothing
// was written.
func (k *Keeper) attempt(ctx context.Context, c lock.SessionChange) (out Changed, lost bool, err error) {
	var before *lock.Session
	out.Began = time.Now()
	err = k.epochs.Transact(ctx, func(b *pgx.Batch) {
		row.QueueLockedSession(b, k.db.Schema, c.Session(), ends(c), &before)
	}, func(_ context.Context, _ *pgx.Conn, e epoch.Epoch, write *pgx.Batch) error {
		after, changed, err := c.Change(before, e.Now)
		out.Session, out.Now, out.Opened = after, e.Now, before == nil
		if err != nil || !changed {
			return err
		}
		if err := e.CheckLength(after.TTL + after.Grace); err != nil {
			return err
		}
		if before == nil {
			row.QueueOpenSession(write, k.db.Schema, after, &lost)
		} else {
			row.QueueSaveSession(write, k.db.Schema, after)
		}
		return nil
	})
	switch {
	case err != nil:
	case out.Ended == 0:
		k.mayEndAt(out.Session)
	default:
		k.watches.tell(c.Session())
	}
	return out, lost, err
}

// ends reports whether the change may end the session. Others, such as heartbeats, do not wait for grants in it.
func ends(c lock.SessionChange) bool {
	switch c.(type) {
	case lock.OpenSession, lock.RenewSession:
		return false
	}
	return true
}

// mayEndAt makes Run look again if the session has so short a life that it might be late.
func (k *Keeper) mayEndAt(s lock.Session) {
	if s.TTL+s.Grace > maxRest {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// End ends what the session has, after its end was recorded. It returns an error if something may be left; Run tries
// again.
func (k *Keeper) End(ctx context.Context, s lock.Session) error {
	ref := s.ID.Ref()
	for {
		left, _, err := k.endSome(ctx, []lock.Session{s})
		if err != nil || left[ref] == 0 {
			return err
		}
	}
}

// Page returns a page of the sessions that have not ended.
func (k *Keeper) Page(ctx context.Context, q paddock.SessionQuery) (page paddock.Page[lock.SessionInfo], err error) {
	after, err := q.After()
	if err != nil {
		return page, err
	}
	rows, err := k.db.Rest.Query(ctx, sqlPage.In(k.db.Schema), after, q.Limit+1, q.Holder)
	if err != nil {
		return page, err
	}
	refs, err := pgx.CollectRows(rows, pgx.RowTo[lock.SessionRef])
	if err != nil {
		return page, err
	}
	if len(refs) > q.Limit {
		refs = refs[:q.Limit]
		page.Next = refs[q.Limit-1].String()
	}
	infos, unread, err := k.infos(ctx, refs)
	for _, ref := range refs {
		if bad := unread[ref]; bad != nil {
			page.Unreadable = append(page.Unreadable, k.db.NoteMalformed(bad))
		}
		if info, found := infos[ref]; found && info.Ended == 0 {
			page.Items = append(page.Items, info)
		}
	}
	return page, err
}

// Info returns a session with what it keeps alive, false if there is none.
func (k *Keeper) Info(ctx context.Context, ref lock.SessionRef) (info lock.SessionInfo, found bool, err error) {
	infos, unread, err := k.infos(ctx, []lock.SessionRef{ref})
	err = cmp.Or(err, unread[ref])
	if info, found = infos[ref]; err != nil || !found {
		return info, false, err
	}
	info.Locks, err = row.LocksOfSession(ctx, k.db.Rest, k.db.Schema, ref, lock.MaxSessionLocks)
	return info, true, err
}

// infos returns the sessions, as far as there are any, without their locks, and why others cannot be read.
func (k *Keeper) infos(
	ctx context.Context, refs []lock.SessionRef,
) (map[lock.SessionRef]lock.SessionInfo, row.Unread, error) {
	var now time.Time
	counts := make(row.SessionCounts)
	b := &pgx.Batch{}
	b.Queue("select clock_timestamp()").QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	counts.Queue(b, k.db.Schema, refs...)
	if err := k.db.Rest.SendBatch(ctx, b).Close(); err != nil {
		return nil, nil, err
	}
	sessions, unread, err := row.ReadSessions(ctx, k.db.Rest, k.db.Schema, refs)
	infos := make(map[lock.SessionRef]lock.SessionInfo, len(sessions))
	for ref, s := range sessions {
		info := s.Info(now.UTC())
		info.Leases, info.Places = counts[ref].Leases, counts[ref].Places
		infos[ref] = info
	}
	return infos, unread, err
}
