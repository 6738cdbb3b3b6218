package server

import (
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// cachedEvents is how many events an eventCache holds at most. It is what the store keeps in memory, so that streams
// that are not far behind find what they are told.
const cachedEvents = 4096

// An eventCache holds the latest events in the form of text/event-stream, so that an event is encoded once for all
// streams. It has a slot for each id modulo cachedEvents. It is safe for concurrent use.
type eventCache struct {
	encode func(lock.Event) []byte
	slots  [cachedEvents]eventCacheSlot
}

type eventCacheSlot struct {
	mu   sync.Mutex
	last *cachedEvent // nil: none yet
}

type cachedEvent struct {
	event lock.Event
	text  []byte
}

// text returns e as a stream tells it. Nobody may change the text.
func (c *eventCache) text(e lock.Event) []byte {
	slot := &c.slots[uint64(e.ID)%cachedEvents]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	// After a restore of the database an id may be that of another event, so the id alone does not decide.
	if slot.last == nil || slot.last.event != e {
		slot.last = &cachedEvent{e, c.encode(e)}
	}
	return slot.last.text
}
