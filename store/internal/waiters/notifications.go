package waiters

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

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

// Notify tells the calls that were granted a lock, those of this replica in memory and others by a notification. It
// also notifies the other replicas of new events, if one of them has subscribers. Call it after each commit.
func (r *Registry) Notify(outcomes []row.Outcome) {
	var elsewhere []lock.Attachment
	events := false
	for i := range outcomes {
		o := &outcomes[i]
		events = events || len(o.Events) > 0
		for j := range o.Promoted {
			w := &o.Promoted[j]
			here := w.Replica == r.self
			r.db.Log.Debug("promoted", "lock", w.Lease.Name, "place", w.Place, "holder", w.Lease.Holder, "here", here)
			if here {
				r.notifyCall(o, w)
			} else {
				elsewhere = append(elsewhere, w.Attachment)
			}
		}
	}
	r.notifier.add(elsewhere, events && r.watched.Load())
}

// notifyCall hands the grant to the call of the waiter. If the call has ended, the grant is given back; the place is
// kept, because the answer may have asked the client to return.
func (r *Registry) notifyCall(o *row.Outcome, w *lock.Waiter) {
	for i := range o.Locks {
		for _, l := range o.Locks[i].Leases {
			grant := row.Outcome{Decision: lock.Decision{Now: o.Now, Lease: l}, Began: o.Began}
			if l.Name == w.Lease.Name && l.ID == w.Lease.ID && r.deliver(w.Attachment, grant) {
				return
			}
		}
	}
	r.leaveInBackground(lock.Leave{
		Name: w.Lease.Name, LeaseID: w.Lease.ID, Attachment: w.Attachment, KeepPlace: true, Disconnected: true,
	})
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
	var trouble database.Trouble
	for {
		select {
		case <-r.db.Context().Done():
			return
		case <-r.notifier.pending:
		}
		payloads, err := r.notifier.take(r.self)
		if err == nil && len(payloads) > 0 {
			err = r.db.Relaxed(func(b *pgx.Batch) { b.Queue(sqlNotify, payloads) })
		}
		r.db.Report(&trouble, "notifier", err)
		if !r.db.Sleep(notifyPause) {
			return
		}
	}
}
