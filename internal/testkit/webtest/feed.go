package webtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// awaitTimeout bounds Feed.Await.
const awaitTimeout = time.Minute

// A Feed is a minimal event stream of the service. Its connections can be cut, and are refused until repair.
type Feed struct {
	mu      sync.Mutex
	events  []lock.Event
	changed chan struct{} // closed by the next change
	broken  bool
	silent  bool     // accept connections but send nothing
	open    int      // connections
	asked   []string // queries of the connections, in order
}

func newFeed() *Feed { return &Feed{changed: make(chan struct{})} }

// change runs do and wakes the connections.
func (f *Feed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Send publishes events.
func (f *Feed) Send(events ...lock.Event) {
	f.change(func() {
		for _, e := range events {
			e.ID = int64(len(f.events) + 1)
			f.events = append(f.events, e)
		}
	})
}

// Sent returns the events so far.
func (f *Feed) Sent() []lock.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]lock.Event(nil), f.events...)
}

// Cut closes all connections and refuses new ones.
func (f *Feed) Cut() { f.change(func() { f.broken = true }) }

// Repair accepts connections again.
func (f *Feed) Repair() { f.change(func() { f.broken = false }) }

// Hold accepts connections but sends nothing.
func (f *Feed) Hold() { f.change(func() { f.silent = true }) }

// Queries returns the queries of all connections so far, in order.
func (f *Feed) Queries() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

// Await waits until there are n connections.
func (f *Feed) Await(t *testing.T, n int) {
	t.Helper()
	for {
		f.mu.Lock()
		open, turned := f.open, f.changed
		f.mu.Unlock()
		if open == n {
			return
		}
		select {
		case <-turned:
		case <-time.After(awaitTimeout):
			t.Fatalf("%d connections, want %d", open, n)
		}
	}
}

// A chunk is the next part of a stream.
type chunk struct {
	events []lock.Event
	turned <-chan struct{} // closed when there is more
	broken bool
}

// after returns the events after the first n.
func (f *Feed) after(n int) chunk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return chunk{f.events[min(n, len(f.events)):], f.changed, f.broken}
}

// begin returns the number of events before the start of the request's stream.
func (f *Feed) begin(r *http.Request) (seen int, silent, broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.URL.RawQuery)
	seen = len(f.events)
	if n, err := strconv.Atoi(r.FormValue("cursor")); err == nil {
		seen = n
	}
	return seen, f.silent, f.broken
}

func (f *Feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen, silent, broken := f.begin(r)
	if broken {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	f.change(func() { f.open++ })
	defer f.change(func() { f.open-- })
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for synced := silent; ; synced = true {
		next := f.after(seen)
		seen += len(next.events)
		for _, e := range next.events {
			if concerns(e, r) {
				fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, onWire(e))
			}
		}
		if !synced {
			fmt.Fprintf(w, "id: %d\nevent: sync\ndata: {\"cursor\":\"%d\"}\n\n", seen, seen)
		}
		if err := flush(); err != nil || next.broken {
			return
		}
		select {
		case <-next.turned:
		case <-r.Context().Done():
			return
		}
	}
}

func concerns(e lock.Event, r *http.Request) bool {
	return strings.HasPrefix(e.Name, r.FormValue("prefix")) && (r.FormValue("lock") == "" || r.FormValue("lock") == e.Name)
}

// onWire returns the event as the service sends it.
func onWire(e lock.Event) []byte {
	m := map[string]any{
		"id": e.ID, "at": e.At.Format(time.RFC3339Nano), "lock": e.Name, "slot": e.Slot, "revision": e.Revision,
		"kind": e.Kind.String(), "mode": e.Mode.String(), "holder": e.Holder,
	}
	if e.Token != 0 {
		m["fencing_token"] = e.Token
	}
	if e.Place != 0 {
		m["place"] = e.Place
	}
	if e.Reason != "" {
		m["reason"] = e.Reason
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}
