package waiters

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

const (
	// notifyPause is the least time between two transactions with notifications. A NOTIFY holds up other commits, so
	// what comes in between goes with the next.
	notifyPause = 5 * time.Millisecond
	// maxGranted is how many calls one notification names at most, because PostgreSQL takes less than 8000 bytes.
	maxGranted = 300
)

var sqlNotify = database.Statement(files, "notify")

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

func (n *notifier) addGranted(call lock.Attachment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.granted = append(n.granted, call)
	n.signal()
}

func (n *notifier) addEvents() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = true
	n.signal()
}

func (n *notifier) signal() {
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
