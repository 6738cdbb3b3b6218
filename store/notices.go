package store

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// noticePause is the least time between two notifications of a replica: a
	// NOTIFY holds up commits, so what comes in between goes with the next.
	noticePause = 5 * time.Millisecond
	// perNotice is how many calls one notification names at most; PostgreSQL takes
	// no more than 8000 bytes.
	perNotice = 300
)

// A notice is what replicas tell each other. It is a hint: nothing is lost with
// it but time.
type notice struct {
	From    lock.Replica      `json:"from"`
	Granted []lock.Attachment `json:"granted,omitempty"` // calls that were granted the lock
	Events  bool              `json:"events,omitempty"`  // there are new events
}

// notices gather what is to be told to other replicas.
type notices struct {
	mu      sync.Mutex
	granted []lock.Attachment
	events  bool
	some    chan struct{} // has a value when there is something to tell
}

func newNotices() *notices { return &notices{some: make(chan struct{}, 1)} }

// addGranted has the replica be told that serves the call.
func (n *notices) addGranted(call lock.Attachment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.granted = append(n.granted, call)
	n.wake()
}

// addEvents has all be told that there are events.
func (n *notices) addEvents() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = true
	n.wake()
}

func (n *notices) wake() {
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// take returns the payloads of what there is to tell.
func (n *notices) take(self lock.Replica) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []notice{{From: self, Events: n.events}}
	for i, some := range slices.Collect(slices.Chunk(n.granted, perNotice)) {
		if i > 0 {
			list = append(list, notice{From: self})
		}
		list[i].Granted = some
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

// sendNotices tells the other replicas, until the store closes. It is done in
// transactions of its own, which wait for no flush: a NOTIFY within a deciding
// transaction would have all commits of the database queue up.
func (s *Store) sendNotices() {
	var mute trouble
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.notices.some:
		}
		payloads, err := s.notices.take(s.self)
		if err == nil {
			err = s.relaxed(func(b *pgx.Batch) { b.Queue(sqlNotify, payloads) })
		}
		s.troubled(&mute, "notifier", err)
		if !s.sleep(noticePause) {
			return
		}
	}
}

// relaxed runs statements in one transaction whose commit waits for no flush.
func (s *Store) relaxed(queue func(*pgx.Batch)) error {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue(sqlRelax)
	queue(b)
	return s.pool.SendBatch(ctx, b).Close()
}
