package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// An outcome is a decision with the moment on this process's clock at which the
// deciding began.
type outcome struct {
	lock.Decision
	began time.Time
}

// until turns an instant of the database's clock into one of this process's,
// never later than the true one.
func (o outcome) until(t time.Time) time.Time { return o.began.Add(t.Sub(o.Now)) }

// errVanished says that an anchor was pruned between its creation and its locking.
var errVanished = errors.New("a lock was pruned meanwhile")

// errOverdrawn says that a command used more than its Draws, which is a bug.
var errOverdrawn = errors.New("used more tokens or events than it said it would")

// sqlBegin does not leave the isolation to the database's default: under a
// stricter one the rows that a batch waited for would fail it.
const sqlBegin = "begin isolation level read committed"

// A tx is the transaction of one batch.
type tx struct {
	conn *pgx.Conn

	began  time.Time
	now    time.Time
	tokens []int64
	ids    []int64
	locks  map[string]lock.State
	ended  map[lock.LeaseRef]lock.Event

	changed map[string]bool
	events  eventRows
	confirm bool // somebody is told that something is so

	overdrawn bool // a command wanted more tokens than were drawn
}

// load is the first round trip. The names must be in order.
func (t *tx) load(ctx context.Context, w *wanted) error {
	t.began = time.Now()
	t.locks = make(map[string]lock.State, len(w.names))
	t.ended = make(map[lock.LeaseRef]lock.Event)
	t.changed = make(map[string]bool)
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	b.Queue(sqlSettings, strconv.FormatInt(rowTimeout.Milliseconds(), 10))
	b.Queue(sqlCreateAnchors, w.names)
	b.Queue(sqlLockAnchors, w.names).Query(t.scanLocks)
	b.Queue(sqlMark, markSpace)
	b.Queue(sqlDraw, w.tokens, w.events).QueryRow(func(row pgx.Row) error {
		return row.Scan(&t.now, &t.tokens, &t.ids)
	})
	b.Queue(sqlEndings, w.refs).Query(t.scanEndings)
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.now = t.now.UTC()
	if len(t.locks) < len(w.names) {
		return errVanished
	}
	return nil
}

func (t *tx) scanLocks(rows pgx.Rows) error {
	for rows.Next() {
		var a anchor
		if err := rows.Scan(a.targets()...); err != nil {
			return err
		}
		t.locks[a.name] = a.state()
	}
	return rows.Err()
}

func (t *tx) scanEndings(rows pgx.Rows) error {
	events, err := pgx.CollectRows(rows, scanEvent)
	for _, e := range events {
		t.ended[e.Ref] = e
	}
	return err
}

// apply has the command decide, on the locks as the commands before left them.
func (t *tx) apply(cmd lock.Command) (outcome, error) {
	v := lock.View{Now: t.now, Ended: t.ended, Tokens: t.token}
	for _, name := range cmd.Names() {
		v.Locks = append(v.Locks, t.locks[name])
	}
	d := cmd.Apply(v)
	if t.overdrawn || len(d.Events) > len(t.ids) {
		return outcome{}, fmt.Errorf("%T: %w", cmd, errOverdrawn)
	}
	for i, e := range d.Events {
		e.ID = t.ids[i]
		t.events.add(e)
		if e.Ref != 0 {
			t.ended[e.Ref] = e
		}
	}
	t.ids = t.ids[len(d.Events):]
	for _, s := range d.Locks {
		t.locks[s.Name] = s
		t.changed[s.Name] = t.changed[s.Name] || d.Changed
	}
	t.confirm = t.confirm || d.Changed || d.Err == nil
	return outcome{Decision: d, began: t.began}, nil
}

// token takes the next of the tokens drawn.
func (t *tx) token() lock.Token {
	if t.overdrawn = len(t.tokens) == 0; t.overdrawn {
		return 0
	}
	token := t.tokens[0]
	t.tokens = t.tokens[1:]
	return lock.Token(token)
}

// save is the second round trip. A batch that only refused is rolled back: it
// promises nothing, and needs no flush. One that confirms what was so before
// commits all the same, so that what it confirms is as durable as a grant.
func (t *tx) save(ctx context.Context) error {
	if !t.confirm {
		rollback(t.conn)
		return nil
	}
	forget(t.conn)
	b := &pgx.Batch{}
	if rows := t.rows(); len(rows.names) > 0 {
		b.Queue(sqlSaveAnchors, rows.args()...)
	}
	if len(t.events.ids) > 0 {
		b.Queue(sqlSaveEvents, t.events.args()...)
	}
	b.Queue("commit")
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	return confirmed(t.conn)
}

func (t *tx) rows() *anchors {
	rows := new(anchors)
	for name, changed := range t.changed {
		if changed {
			rows.add(t.locks[name])
		}
	}
	return rows
}
