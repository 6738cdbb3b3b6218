package waiters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// notifyPause is the least time between two transactions with notifications. A NOTIFY holds up other commits, so
	// what comes in between goes with the next.
	notifyPause = 5 * time.Millisecond
	// maxGranted is how many calls one notification names at most, because PostgreSQL takes less than 8000 bytes.
	maxGranted = 300
)

var sqlNotify = database.Statement(files, "notify")

// Notify tells the calls that were granted a lock, those of this replica in memory and others by a notification; and
// those whose sessions have ended. It also notifies the other replicas of new events, if one of them has subscribers.
// Call it after each commit.
func (r *Registry) Notify(outcomes []*row.Outcome) {
	var elsewhere []lock.Attachment
	events := false
	for _, o := range outcomes {
		events = events || len(o.Events) > 0
		for j := range o.Promoted {
			w := &o.Promoted[j]
			here := w.Replica == r.self
			r.db.Log.Debug("promoted", "lock", w.Lease.Name, "place", w.Place, "holder", w.Lease.Holder, "here", here)
			if here {
				r.db.Observer.HandedOver(time.Since(o.Began))
				r.notifyCall(o, w)
			} else {
				elsewhere = append(elsewhere, w.Attachment)
			}
		}
		for j := range o.Ousted {
			r.wake(o.Ousted[j].Attachment) // of this replica, or of another one
			elsewhere = append(elsewhere, o.Ousted[j].Attachment)
		}
		if o.Claimed > 0 {
			r.db.Observer.HandedOver(o.Claimed)
		}
	}
	r.notifier.add(elsewhere, events && r.watched.Load())
}

// notifyCall hands the grant to the call of the waiter. If the call has ended, the grant is given back; the place is
// kept, since the client may return.
func (r *Registry) notifyCall(o *row.Outcome, w *lock.Waiter) {
	leave := lock.Leave{Locks: w.Lease.Requested(), LeaseID: w.Lease.ID, Attachment: w.Attachment, KeepPlace: true, Disconnected: true,
		WaitLeft: max(w.WaitUntil.Sub(o.Now), 0)}
	if leases := leasesOf(o, leave); leases != nil {
		grant := &row.Outcome{Decision: lock.Decision{Now: o.Now, Leases: leases}, Began: o.Began}
		if r.deliver(w.Attachment, grant) {
			return
		}
	}
	r.leaveInBackground(w.Caller, leave)
}

// leasesOf returns the leases that the call was granted, nil if they have ended already.
func leasesOf(o *row.Outcome, of lock.Leave) (leases []lock.Lease) {
	for i := range o.Locks {
		for _, l := range o.Locks[i].Leases {
			if l.ID == of.LeaseID && slices.Contains(of.Locks, l.Name) {
				leases = append(leases, l)
			}
		}
	}
	if len(leases) < len(of.Locks) {
		return nil
	}
	return leases
}

// A notification is what one replica tells the others. It is a hint: if it is lost, the heartbeat finds the same.
type notification struct {
	From    lock.Replica      `json:"from"`
	Granted []lock.Attachment `json:"granted,omitempty"` // calls that were granted a lock
	Events  bool              `json:"events,omitempty"`  // there are new events
}

// A notifier collects what other replicas are to be told.
type notifier struct {
	mu      sync.Mutex
	granted []lock.Attachment
	events  bool
	pending chan struct{} // has a value when there is something to send
}

func (n *notifier) add(granted []lock.Attachment, events bool) {
	if len(granted) == 0 && !events {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.granted, n.events = append(n.granted, granted...), n.events || events
	select {
	case n.pending <- struct{}{}:
	default:
	}
}

// take removes what was collected, and returns it as the payloads of notifications.
func (n *notifier) take(self lock.Replica) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []notification
	for some := range slices.Chunk(n.granted, maxGranted) {
		list = append(list, notification{From: self, Granted: some})
	}
	if n.events {
		list = append(list, notification{From: self, Events: true})
	}
	n.granted, n.events = nil, false
	payloads := make([]string, len(list))
	for i, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		payloads[i] = string(text)
	}
	return payloads, nil
}

// sendNotifications sends what is collected, until the database is stopped. It uses transactions of its own that do
// not wait for the disk: a NOTIFY in a deciding transaction would serialize all commits of the database.
func (r *Registry) sendNotifications() {
	for {
		select {
		case <-r.db.Context().Done():
			return
		case <-r.notifier.pending:
		}
		payloads, err := r.notifier.take(r.self)
		if err == nil && len(payloads) > 0 {
			err = r.db.Relaxed(func(b *pgx.Batch) { b.Queue(sqlNotify.In(r.db.Schema), payloads) })
		}
		r.db.Report("notifier", err)
		if !r.db.Sleep(notifyPause) {
			return
		}
	}
}

const (
	// listenCheck is how long the connection may be silent before it is checked.
	listenCheck = 5 * time.Second
	// echoTimeout is how long the connection may take to receive what this replica sent to itself over another one. It
	// is longer than listenCheck, so that what arrives with the check is read first.
	echoTimeout = listenCheck + time.Second
	// maxListenPause is the longest pause before the next connection.
	maxListenPause = 5 * time.Second
)

// errNoEcho says that a connection listens, and receives nothing.
var errNoEcho = errors.New("a notification of this replica to itself did not arrive")

// A listener receives the notifications of other replicas. Its connection is its own, since a pooler in transaction
// mode would lose them. To find out whether there is such a pooler, each connection begins with an echo: a
// notification that the replica sends to itself over another connection.
type listener struct {
	*Registry
	onEvents           func()             // see Hooks
	sendEcho           func(string) error // sends a notification to this replica
	check, echoTimeout time.Duration      // the constants, but in tests
	pause              *backoff.ExponentialBackOff
	noEcho             bool // the last connection received no echo, which was logged
}

func newListener(r *Registry, onEvents func()) *listener {
	l := &listener{
		Registry: r, onEvents: onEvents, check: listenCheck, echoTimeout: echoTimeout, pause: database.NewPause(),
	}
	l.sendEcho = l.notifySelf
	l.pause.MaxInterval = maxListenPause
	return l
}

// run listens until the database is stopped.
func (l *listener) run() {
	for {
		err := l.listen()
		l.db.Report("listener", err)
		if errors.Is(err, errNoEcho) && !l.noEcho {
			l.noEcho = true
			l.db.Log.Error(
				"notifications do not arrive; is there a pooler in transaction mode? start with --pooler-mode=transaction",
				"waited", l.echoTimeout, "error", err)
		}
		if !l.db.Sleep(l.pause.NextBackOff()) {
			return
		}
	}
}

// echoArrived records that the connection has received the echo.
func (l *listener) echoArrived() {
	if l.noEcho {
		l.db.Log.Info("notifications resumed")
	}
	l.pause.Reset()
	l.noEcho = false
}

// listen connects, and listens until the connection fails or the database is stopped. It returns errNoEcho if the echo
// does not arrive within echoTimeout. What was sent before was not received, so all calls are woken.
func (l *listener) listen() error {
	conn, err := l.connect()
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(l.db.Context())) //nolint:errcheck // it is given up
	l.WakeAll()
	l.onEvents()
	echo := uuid.NewString()
	if err := l.sendEcho(echo); err != nil {
		return err
	}
	sent, echoed := time.Now(), false
	for {
		received, err := l.receive(conn)
		if err != nil {
			return err
		}
		switch {
		case received != nil && received.Channel != l.echoChannel():
			l.handle(received.Payload)
		case received != nil && received.Payload == echo:
			echoed = true
			l.echoArrived()
		}
		switch {
		case echoed:
			l.db.Report("listener", nil)
		case time.Since(sent) >= l.echoTimeout:
			return errNoEcho
		}
	}
}

// connect returns a connection that listens to the other replicas and to the echo.
func (l *listener) connect() (conn *pgx.Conn, err error) {
	err = l.db.Within(func(ctx context.Context) error {
		if conn, err = l.db.Connect(ctx); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, l.db.Schema.In("listen paddock; listen ")+l.echoChannel()); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
		return nil
	})
	return conn, err
}

// notifySelf sends the echo over a connection of the pool. It prepares no statement, so it works through a pooler,
// too.
func (l *listener) notifySelf(echo string) error {
	return l.db.Within(func(ctx context.Context) error {
		sql := fmt.Sprintf("set local synchronous_commit = off; notify %s, '%s'", l.echoChannel(), echo)
		_, err := l.db.Rest.Exec(ctx, sql)
		return err
	})
}

// echoChannel returns the channel on which the replica notifies itself. It is the same for each connection, since a
// pooler may continue to listen when the connection is closed.
func (l *listener) echoChannel() string {
	return l.db.Schema.String() + "_echo_" + strconv.FormatInt(int64(l.self), 36)
}

// receive returns the next notification, or nil if the connection was silent for a while and is sound.
func (l *listener) receive(conn *pgx.Conn) (*pgconn.Notification, error) {
	ctx, cancel := context.WithTimeout(l.db.Context(), l.check)
	defer cancel()
	received, err := conn.WaitForNotification(ctx)
	silent := errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed() && l.db.Context().Err() == nil
	if silent {
		return nil, l.db.Within(conn.Ping)
	}
	return received, err
}

// handle acts on a notification of another replica.
func (l *listener) handle(payload string) {
	var n notification
	if err := json.Unmarshal([]byte(payload), &n); err != nil {
		l.db.Log.Warn("notification is malformed; ignoring it", "error", err)
		return
	}
	if n.From == l.self {
		return
	}
	l.wake(n.Granted...)
	if n.Events {
		l.onEvents()
	}
}
