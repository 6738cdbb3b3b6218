package store

import (
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// waitedFor is a lock for which somebody waits with the replica.
func waitedFor(name string, with lock.Replica) lock.Record {
	return lock.Record{Name: name, Queue: []*lock.Waiter{{Place: 1, Replica: with}}}
}

// TestACrowdIsBounded: whatever other replicas have emptied, and this one never hears of.
func TestACrowdIsBounded(t *testing.T) {
	t.Parallel()
	var c crowd
	for i := range maxCrowd + 100 {
		name := fmt.Sprint(i)
		c.put(waitedFor(name, here), 1, 1, here)
		if !c.has(name) || len(c.names) > maxCrowd {
			t.Fatalf("%d locks are known, the newest: %t", len(c.names), c.has(name))
		}
	}
	if len(c.names) != maxCrowd {
		t.Errorf("%d locks are known, want %d", len(c.names), maxCrowd)
	}
	for name := range c.names {
		c.put(waitedFor(name, here), 2, 1, here)
		break
	}
	if len(c.names) != maxCrowd {
		t.Errorf("%d locks are known after one came again, want %d", len(c.names), maxCrowd)
	}
}

// TestACrowdRemembersWhatItServesAlone: at which somebody waits with another replica is read
// each time.
func TestACrowdRemembersWhatItServesAlone(t *testing.T) {
	t.Parallel()
	var c crowd
	c.put(waitedFor("mine", here), 1, 1, here)
	c.put(waitedFor("shared", here+1), 1, 1, here)
	unknown, remembered := c.of([]string{"free", "mine", "shared"})
	if len(unknown) != 1 || unknown[0] != "shared" || len(c.names["shared"].state.Queue) != 0 {
		t.Errorf("to be read is %v", unknown)
	}
	if m, ok := remembered["mine"]; len(remembered) != 1 || !ok || len(m.state.Queue) != 1 {
		t.Errorf("remembered is %v", remembered)
	}
	for name, want := range map[string][2]bool{"mine": {true, true}, "shared": {true, false}, "free": {false, false}} {
		if crowded, here := c.knows(name); crowded != want[0] || here != want[1] {
			t.Errorf("%s: crowded %t, waited for here alone %t; want %v", name, crowded, here, want)
		}
	}
	c.put(lock.Record{Name: "mine"}, 2, 1, here)
	if c.has("mine") {
		t.Error("a lock that is crowded no longer is known")
	}
}
