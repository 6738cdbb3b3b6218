package verify_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// parseEvents parses events, one per line: kind, mode, slot, holder, token, place. Several slots are separated by commas. A
// refused event also has the newest
// token and the holder of the lock, a dash for none. The events are a second apart, except that grants to waiters come
// at the time of the event before.
func parseEvents(t *testing.T, text string) []lock.Event {
	t.Helper()
	var events []lock.Event
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		n := int64(len(events) + 1)
		e := lock.Event{ID: 10 * n, Name: "jobs:nightly", Revision: n}
		var kind, mode, slots string
		if _, err := fmt.Sscan(line, &kind, &mode, &slots, &e.Holder, &e.Token, &e.Place); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.Kind, e.Mode = lock.KindOf(kind), lock.ModeOf(mode)
		first, _, several := strings.Cut(slots, ",")
		if _, err := fmt.Sscan(first, &e.Slot); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if several {
			e.Slots = lock.Slots(strings.ReplaceAll(slots, ",", " "))
		}
		if words := strings.Fields(line); e.Kind == lock.Refused {
			newest, err := strconv.Atoi(words[6])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			e.Newest, e.HeldBy = lock.Token(newest), strings.TrimPrefix(words[7], "-")
		}
		if e.Kind != lock.Granted || e.Place == 0 {
			at = at.Add(time.Second)
		}
		e.At = at
		events = append(events, e)
	}
	return events
}

var validEvents = map[string]struct {
	rules  verify.Rules
	events string
}{
	"no events": {},
	"leases one after the other": {events: `
		granted exclusive 0 a 1 0
		released exclusive 0 a 1 0
		granted exclusive 0 b 5 0
		expired exclusive 0 b 5 0
		granted exclusive 0 c 6 0
		revoked exclusive 0 c 6 0`},
	"a suspect lease that is suspect again, and then revoked": {events: `
		granted exclusive 0 a 1 0
		suspected exclusive 0 a 1 0
		suspected exclusive 0 a 1 0
		revoked exclusive 0 a 1 0
		granted exclusive 0 b 2 0
		expired exclusive 0 b 2 0`},
	"a revocation that leaves the grace": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		revoked exclusive 0 a 1 0
		queued exclusive 0 c 0 4
		granted exclusive 0 b 2 2
		released exclusive 0 b 2 0
		granted exclusive 0 c 3 4`},
	"a revocation that skips the grace": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		revoked exclusive 0 a 1 0
		queued exclusive 0 c 0 4
		revoked exclusive 0 a 1 0
		granted exclusive 0 b 2 2
		released exclusive 0 b 2 0
		granted exclusive 0 c 3 4`},
	"permits, one of them revoked": {rules: verify.Rules{Capacity: 2}, events: `
		granted permit 1 a 1 0
		granted permit 2 b 2 0
		queued permit 0 c 0 3
		revoked permit 1 a 1 0
		queued permit 0 d 0 5
		granted permit 1 c 3 3
		released permit 2 b 2 0
		granted permit 2 d 4 5`},
	"a queue": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		queued exclusive 0 c 0 3
		queued exclusive 0 d 0 4
		dequeued exclusive 0 c 0 3
		released exclusive 0 a 1 0
		granted exclusive 0 b 2 2
		released exclusive 0 b 2 0
		granted exclusive 0 d 3 4`},
	"a writer between readers": {events: `
		granted shared 1 a 1 0
		granted shared 2 b 1 0
		queued exclusive 0 w 0 3
		queued shared 0 c 0 4
		queued shared 0 d 0 5
		released shared 1 a 1 0
		released shared 2 b 1 0
		granted exclusive 0 w 2 3
		released exclusive 0 w 2 0
		granted shared 1 c 3 4
		granted shared 2 d 3 5`},
	"a writer dequeued ahead of a reader": {events: `
		granted shared 1 a 1 0
		queued exclusive 0 w 0 2
		queued shared 0 b 0 3
		dequeued exclusive 0 w 0 2
		granted shared 2 b 1 3`},
	"permits": {rules: verify.Rules{Capacity: 2}, events: `
		granted permit 1 a 1 0
		granted permit 2 b 2 0
		queued permit 0 c 0 3
		released permit 1 a 1 0
		granted permit 1 c 3 3
		released permit 2 b 2 0`},
	"several permits": {rules: verify.Rules{Capacity: 3, Permits: byName}, events: `
		granted permit 1,2 two 1 0
		granted permit 3 a 2 0
		queued permit 0 two 0 3
		queued permit 0 b 0 4
		released permit 3 a 2 0
		queued permit 0 c 0 6
		revoked permit 1,2 two 1 0
		revoked permit 1,2 two 1 0
		granted permit 1,2 two 3 3
		granted permit 3 b 4 4
		expired permit 1,2 two 3 0
		granted permit 1 c 5 6`},
	"a withdrawn grant that is granted again": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		queued exclusive 0 c 0 3
		released exclusive 0 a 1 0
		granted exclusive 0 b 2 2
		withdrawn exclusive 0 b 2 2
		granted exclusive 0 c 3 3
		released exclusive 0 c 3 0
		granted exclusive 0 b 4 2`},
	"a withdrawn grant that is dequeued": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		released exclusive 0 a 1 0
		granted exclusive 0 b 2 2
		withdrawn exclusive 0 b 2 2
		dequeued exclusive 0 b 0 2
		granted exclusive 0 c 3 0`},
	"a withdrawn grant whose waiter leaves": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		queued exclusive 0 c 0 3
		released exclusive 0 a 1 0
		granted exclusive 0 b 2 2
		withdrawn exclusive 0 b 2 0
		granted exclusive 0 c 3 3`},
	"a reader behind a writer that is back after its grant was withdrawn": {events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 w 0 2
		released exclusive 0 a 1 0
		granted exclusive 0 w 2 2
		withdrawn exclusive 0 w 2 2
		granted shared 1 b 3 0
		queued shared 0 c 0 7
		released shared 1 b 3 0
		granted exclusive 0 w 4 2
		released exclusive 0 w 4 0
		granted shared 1 c 5 7`},
	"a waiter behind a set that is back after its grant was withdrawn": {rules: verify.Rules{InSet: isSet}, events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 set 0 2
		released exclusive 0 a 1 0
		granted exclusive 0 set 2 2
		withdrawn exclusive 0 set 2 2
		queued exclusive 0 b 0 6
		queued exclusive 0 c 0 7
		granted exclusive 0 set 3 2
		released exclusive 0 set 3 0
		granted exclusive 0 b 4 6
		released exclusive 0 b 4 0
		granted exclusive 0 c 5 7`},
	"refused tokens": {events: `
		granted exclusive 0 a 1 0
		expired exclusive 0 a 1 0
		refused exclusive 0 a 1 0 1 -
		granted exclusive 0 b 2 0
		refused exclusive 0 a 1 0 2 b
		revoked exclusive 0 b 2 0
		refused exclusive 0 b 2 0 2 -`},
	"a refused token of a reader": {events: `
		granted shared 1 a 1 0
		granted shared 2 b 1 0
		released shared 1 a 1 0
		refused shared 1 a 1 0 1 b`},
	"a skipped waiter, if allowed": {rules: verify.Rules{AllowOvertaking: true}, events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2
		queued exclusive 0 c 0 3
		released exclusive 0 a 1 0
		granted exclusive 0 c 2 3
		released exclusive 0 c 2 0
		dequeued exclusive 0 b 0 2`},
	"a waiter that was away, if it may have been": {rules: verify.Rules{Away: isAway}, events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 away 0 2
		queued exclusive 0 c 0 3
		released exclusive 0 a 1 0
		granted exclusive 0 c 2 3
		released exclusive 0 c 2 0
		granted exclusive 0 away 3 2`},
	"a set that waits for its other lock": {rules: verify.Rules{InSet: isSet}, events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 set 0 2
		released exclusive 0 a 1 0
		queued exclusive 0 b 0 4
		granted exclusive 0 set 2 2
		released exclusive 0 set 2 0
		granted exclusive 0 b 3 4`},
	"a waiter at the end, if allowed": {rules: verify.Rules{AllowWaiters: true}, events: `
		granted exclusive 0 a 1 0
		queued exclusive 0 b 0 2`},
}

// isAway reports whether a waiter was disconnected for a while: its holder is called so.
func isAway(e lock.Event) bool { return e.Holder == "away" }

// byName returns how many permits the holder asks for: "two" for two, another one for one.
func byName(e lock.Event) int {
	if e.Holder == "two" {
		return 2
	}
	return 1
}

// isSet reports whether a waiter waits for a set: its holder is called so.
func isSet(e lock.Event) bool { return e.Holder == "set" }

func TestValidEventsPass(t *testing.T) {
	t.Parallel()
	for name, c := range validEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.rules.Check(parseEvents(t, c.events)); err != nil {
				t.Error(err)
			}
		})
	}
}

const (
	held = "granted exclusive 0 a 1 0\n"
	// promoted ends with a grant to a waiter, with another waiter behind it.
	promoted = held + "queued exclusive 0 b 0 2\nqueued exclusive 0 c 0 3\nreleased exclusive 0 a 1 0\n" +
		"granted exclusive 0 b 2 2\n"
)

var invalidEvents = map[string]struct {
	rules  verify.Rules
	events string
	want   string
}{
	"a refused token whose lease is active": {events: held + "refused exclusive 0 a 1 0 1 a", want: "has not ended"},
	"a refused token beside another newest one": {events: held + "released exclusive 0 a 1 0\nrefused exclusive 0 a 1 0 2 -",
		want: "the newest token is 1"},
	"a refused token that was not granted": {events: held + "refused exclusive 0 a 2 0 1 a", want: "the newest token is 1"},
	"a refused token, held by another": {events: held + "released exclusive 0 a 1 0\ngranted exclusive 0 b 2 0\nrefused exclusive 0 a 1 0 2 c",
		want: `"c" did not hold the lock`},
	"a refused token, held by no client": {events: held + "released exclusive 0 a 1 0\nrefused exclusive 0 a 1 0 1 a",
		want: `"a" did not hold the lock`},
	"two exclusive leases at once": {events: held + "granted exclusive 0 b 2 0", want: "conflicts"},
	"a reader beside a writer":     {events: held + "granted shared 1 b 2 0", want: "conflicts"},
	"a permit beside a reader":     {events: "granted shared 1 a 1 0\ngranted permit 2 b 2 0", want: "conflicts"},
	"one slot twice": {events: "granted permit 1 a 1 0\ngranted permit 1 b 2 0",
		want: "the slot is taken"},
	"an exclusive lease in slot 1": {events: "granted exclusive 1 a 1 0", want: "slot 0 is for exclusive leases"},
	"a reader in slot 0":           {events: "granted shared 0 a 1 0", want: "slot 0 is for exclusive leases"},
	"a slot beyond the capacity": {rules: verify.Rules{Capacity: 1},
		events: "granted permit 1 a 1 0\nreleased permit 1 a 1 0\ngranted permit 2 b 2 0",
		want:   "beyond the capacity"},
	"a token that does not grow": {events: held + "released exclusive 0 a 1 0\ngranted exclusive 0 b 1 0",
		want: "not greater than 1"},
	"permits with one token": {events: "granted permit 1 a 1 0\ngranted permit 2 b 1 0",
		want: "not greater than 1"},
	"two tokens in one shared phase": {events: "granted shared 1 a 1 0\ngranted shared 2 b 2 0",
		want: "the other readers have token 1"},
	"an old token for a shared phase": {events: held + "released exclusive 0 a 1 0\ngranted shared 1 b 1 0",
		want: "not greater than 1"},
	"an end of a free lock":        {events: "released exclusive 0 a 1 0", want: "no such lease"},
	"a suspect lease that expires": {events: held + "suspected exclusive 0 a 1 0\nexpired exclusive 0 a 1 0", want: "the lease was suspect"},
	"two ends of one lease": {events: held + "released exclusive 0 a 1 0\nexpired exclusive 0 a 1 0",
		want: "no such lease"},
	"an end of another holder's lease": {events: held + "released exclusive 0 b 1 0", want: "no such lease"},
	"a place that is not the revision": {events: held + "queued exclusive 0 b 0 7", want: "is its revision"},
	"a waiter with a token":            {events: held + "queued exclusive 0 b 2 2", want: "no token"},
	"a dequeued waiter with a token": {events: held + "queued exclusive 0 b 0 2\ndequeued exclusive 0 b 3 2",
		want: "no token"},
	"a grant to an unknown waiter": {events: "granted exclusive 0 a 1 7", want: "no waiter has that place"},
	"an unknown waiter is dequeued": {events: held + "dequeued exclusive 0 b 0 7",
		want: "no waiter has that place"},
	"a waiter dequeued twice": {events: held +
		"queued exclusive 0 b 0 2\ndequeued exclusive 0 b 0 2\ndequeued exclusive 0 b 0 2",
		want: "no waiter has that place"},
	"a place granted to another holder": {events: held +
		"queued exclusive 0 b 0 2\nreleased exclusive 0 a 1 0\ngranted exclusive 0 c 2 2",
		want: "another waiter had that place"},
	"a waiter that is skipped behind one that was away": {rules: verify.Rules{Away: isAway}, events: held +
		"queued exclusive 0 away 0 2\nqueued exclusive 0 b 0 3\nqueued exclusive 0 c 0 4\nreleased exclusive 0 a 1 0\n" +
		"granted exclusive 0 c 2 4", want: "it overtakes revision 3"},
	"a waiter for a free lock, behind one that was away": {rules: verify.Rules{Away: isAway}, events: held +
		"queued exclusive 0 away 0 2\nqueued exclusive 0 b 0 3\nreleased exclusive 0 a 1 0\nqueued exclusive 0 c 0 5",
		want: `"b" still waits although`},
	"a waiter for a free lock, behind a withdrawn grant": {events: promoted +
		"withdrawn exclusive 0 b 2 2\nqueued exclusive 0 d 0 7",
		want: `"c" still waits although`},
	"a waiter for a free lock, after a withdrawn grant was granted again": {events: promoted +
		"withdrawn exclusive 0 b 2 2\ngranted exclusive 0 b 3 2\nreleased exclusive 0 b 3 0\nqueued exclusive 0 d 0 9",
		want: `"c" still waits although`},
	"a waiter that is skipped behind a withdrawn grant": {events: promoted +
		"queued exclusive 0 d 0 6\nwithdrawn exclusive 0 b 2 2\ngranted exclusive 0 d 3 6", want: "it overtakes revision 3"},
	"a grant to a waiter that left with its withdrawn grant": {events: promoted +
		"withdrawn exclusive 0 b 2 0\ngranted exclusive 0 c 3 3\nreleased exclusive 0 c 3 0\ngranted exclusive 0 b 4 2",
		want: "no waiter has that place"},
	"a withdrawn grant whose waiter gets another place": {events: promoted + "withdrawn exclusive 0 b 2 1",
		want: "the waiter had the place 2"},
	"a request that overtakes a set": {rules: verify.Rules{InSet: isSet}, events: held +
		"queued exclusive 0 set 0 2\nreleased exclusive 0 a 1 0\ngranted exclusive 0 c 2 0",
		want: "overtakes"},
	"a waiter for a free lock, after a set": {rules: verify.Rules{InSet: isSet}, events: held +
		"queued exclusive 0 set 0 2\nqueued exclusive 0 b 0 3\nreleased exclusive 0 a 1 0\ngranted exclusive 0 set 2 2\n" +
		"released exclusive 0 set 2 0\nqueued exclusive 0 c 0 7",
		want: "still waits although"},
	"a request that overtakes": {events: held +
		"queued exclusive 0 b 0 2\nreleased exclusive 0 a 1 0\ngranted exclusive 0 c 2 0",
		want: "still waits although"},
	"a reader that overtakes": {events: "granted shared 1 a 1 0\nqueued exclusive 0 b 0 2\ngranted shared 2 c 1 0",
		want: "overtakes"},
	"the second waiter before the first": {events: held +
		"queued exclusive 0 b 0 2\nqueued exclusive 0 c 0 3\nreleased exclusive 0 a 1 0\ngranted exclusive 0 c 2 3",
		want: "overtakes"},
	"one place granted twice": {events: held + "queued exclusive 0 b 0 2\nreleased exclusive 0 a 1 0\n" +
		"granted exclusive 0 b 2 2\nreleased exclusive 0 b 2 0\ngranted exclusive 0 b 3 2",
		want: "no waiter has that place"},
	"a waiter for a free lock": {events: held +
		"queued exclusive 0 b 0 2\nreleased exclusive 0 a 1 0\nqueued exclusive 0 c 0 4",
		want: "still waits although"},
	"a waiter after the grace was skipped": {events: held + "queued exclusive 0 b 0 2\n" +
		"revoked exclusive 0 a 1 0\nrevoked exclusive 0 a 1 0\nqueued exclusive 0 c 0 5",
		want: "still waits although"},
	"three revocations of one lease": {events: held +
		"revoked exclusive 0 a 1 0\nrevoked exclusive 0 a 1 0\nrevoked exclusive 0 a 1 0",
		want: "no such lease"},
	"a waiter at the end": {events: held + "queued exclusive 0 b 0 2", want: "still wait"},
	"an unknown kind":     {events: "dreamt exclusive 0 a 1 0", want: "unknown kind"},
	"several permits where one is free": {rules: verify.Rules{Capacity: 3, Permits: byName},
		events: "granted permit 1,2 two 1 0\ngranted permit 3,4 two 2 0", want: "beyond the capacity"},
	"several permits beside others with their slots": {rules: verify.Rules{Permits: byName},
		events: "granted permit 1,2 two 1 0\ngranted permit 2 b 2 0", want: "the slot is taken"},
	"a part of several permits": {rules: verify.Rules{Capacity: 3, Permits: byName},
		events: "granted permit 1 two 1 0", want: "it has 1 permits, and 2 were asked for"},
	"an end of a part of several permits": {rules: verify.Rules{Capacity: 3, Permits: byName},
		events: "granted permit 1,2 two 1 0\nreleased permit 1 two 1 0", want: "no such lease"},
	"a permit that overtakes several": {rules: verify.Rules{Capacity: 3, Permits: byName},
		events: "granted permit 1,2 two 1 0\nqueued permit 0 two 0 2\ngranted permit 3 b 2 0", want: "overtakes"},
	"several permits that are free, and waited for": {rules: verify.Rules{Capacity: 3, Permits: byName},
		events: "granted permit 1,2 two 1 0\nqueued permit 0 two 0 2\nreleased permit 1,2 two 1 0\nqueued permit 0 a 0 4",
		want:   "still waits although"},
	"slots out of order":      {events: "granted permit 2,1 two 1 0", want: "cannot have the slots"},
	"a reader with two slots": {events: "granted shared 1,2 a 1 0", want: "cannot have the slots"},
	"a permit too many": {rules: verify.Rules{Capacity: 2},
		events: "granted permit 1 a 1 0\ngranted permit 2 b 2 0\ngranted permit 3 c 3 0", want: "beyond the capacity"},
}

func TestInvalidEventsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range invalidEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectError(t, c.rules.Check(parseEvents(t, c.events)), c.want)
		})
	}
}

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want it to say %q", err, want)
	}
}

func TestEventsOutOfOrderAreFound(t *testing.T) {
	t.Parallel()
	const three = held + "released exclusive 0 a 1 0\ngranted exclusive 0 b 2 0"
	for want, spoil := range map[string]func([]lock.Event) []lock.Event{
		"does not follow 1":   func(e []lock.Event) []lock.Event { return append(e[:1:1], e[2:]...) },
		"does not follow 0":   func(e []lock.Event) []lock.Event { return e[1:] },
		"does not follow 3":   func(e []lock.Event) []lock.Event { return append(e, e[2]) },
		"is not greater than": func(e []lock.Event) []lock.Event { e[2].ID = e[1].ID; return e },
		"but was":             func(e []lock.Event) []lock.Event { e[1].Name = "another"; return e },
		"its time":            func(e []lock.Event) []lock.Event { e[2].At = e[0].At; return e },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			expectError(t, verify.Rules{}.Check(spoil(parseEvents(t, three))), want)
		})
	}
}
