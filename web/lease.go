package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A lease is a lease as the page shows it.
type lease struct {
	lock.LeaseInfo
	Name     string // of the lock
	State    lock.State
	Metadata string // indented; empty if there is none
	Held     elapsed
	Left     timeLeft
	Grace    timeLeft    // after the end
	Over     timeLeft    // until the grace has ended
	Back     string      // the location to return to after a revocation
	With     *otherLocks // of its set, on a lock's page; nil: none

	Revocable bool // the reader may revoke it
	Recent    bool // it was acquired so lately that the time of day tells when
	Waiters   *int // of the lock; nil: unknown
}

// leasesOf returns the leases of l by slot, as shown to the reader.
func leasesOf(l lock.Lock, back location, to reader) []lease {
	leases := make([]lease, 0, len(l.Leases))
	for _, h := range l.Leases {
		one := leaseOf(l.Name, h, l.AsOf, back.Encode())
		one.Revocable, one.Waiters = to.mayRevoke(), &l.Waiters
		leases = append(leases, one)
	}
	slices.SortStableFunc(leases, func(a, b lease) int { return cmp.Compare(a.Slot, b.Slot) })
	return leases
}

func leaseOf(name string, h lock.LeaseInfo, asOf time.Time, back string) lease {
	return lease{
		LeaseInfo: h, Name: name, State: leaseState(h), Metadata: indentJSON(h.Metadata), Back: back,
		Held: elapsed(asOf.Sub(h.AcquiredAt)), Left: timeLeft(h.Remaining), Grace: timeLeft(h.Grace),
		Over: timeLeft(h.ExpiresAt.Add(h.Grace).Sub(asOf)),
	}
}

func leaseState(h lock.LeaseInfo) lock.State {
	switch {
	case h.Suspect:
		return lock.Suspect
	case h.Remaining <= 0:
		return lock.InGrace
	}
	return lock.Held
}

// GraceOf returns the grace in words.
func (l lease) GraceOf() string { return graceOf(l.LeaseInfo) }

// graceOf returns the grace of the leases in words; there is one lease at least.
func graceOf(leases ...lock.LeaseInfo) string {
	byGrace := func(a, b lock.LeaseInfo) int { return cmp.Compare(a.Grace, b.Grace) }
	least, greatest := slices.MinFunc(leases, byGrace).Grace, slices.MaxFunc(leases, byGrace).Grace
	switch {
	case greatest == 0:
		return "none"
	case least != greatest:
		return "up to " + timeLeft(greatest).String()
	}
	return timeLeft(greatest).String()
}

// Alone reports whether the lease is exclusive, so that it needs no slot to identify it.
func (l lease) Alone() bool { return l.Mode == lock.Exclusive }

// Key identifies the lease across refreshes. It differs from the key of the next lease in the same slot with the same
// token.
func (l lease) Key() string {
	return fmt.Sprintf("%s/%d/%d/%d", l.Name, l.Slot, l.Token, l.AcquiredAt.UnixMicro())
}

// Pick returns the lease for the form that revokes several.
func (l lease) Pick() string {
	v := url.Values{"name": {l.Name}, "token": {strconv.FormatInt(int64(l.Token), 10)}}
	if !l.Alone() {
		v.Set("slot", strconv.Itoa(l.Slot))
	}
	if l.Mode == lock.Shared {
		v.Set("since", l.AcquiredAt.UTC().Format(time.RFC3339Nano))
	}
	return v.Encode()
}

// leasesWithToken returns the leases of l with the token, and with the slot if it is not nil.
func leasesWithToken(l lock.Lock, token lock.Token, slot *int) []lock.LeaseInfo {
	return slices.DeleteFunc(slices.Clone(l.Leases), func(h lock.LeaseInfo) bool {
		return h.Token != token || slot != nil && !h.Slots.Include(h.Slot, *slot)
	})
}

func indentJSON(m json.RawMessage) string {
	if len(m) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, m, "", "  "); err != nil {
		return string(m)
	}
	return strings.TrimSpace(b.String())
}

// maxRowLeases bounds the leases that the list shows of a lock. The lock's page has all.
const maxRowLeases = 3

// A row is a lock in the list.
type row struct {
	Name    string
	State   lock.State
	Token   lock.Token // the newest token; zero: none
	Sharing sharing
	Leases  []lease
	More    int // leases that are not shown
	Waiters int
	Below   int    // of the waiters in its queue that wait for locks below
	Closed  bool   // by a release
	Frozen  bool   // by an operator
	URL     string // of the lock's page

	Paused   *pause    // that keeps the lock, which is free, from being granted; nil: none
	Obstacle *obstacle // below the lock, which is free; nil: none
}

func rowsOf(locks []lock.Lock, here location, to reader) []row {
	rows := make([]row, 0, len(locks))
	for _, l := range locks {
		page := here
		page.Lock = l.Name
		leases := leasesOf(l, here, to)
		slices.SortStableFunc(leases, func(a, b lease) int {
			return cmp.Compare(b.holderRank(here.Holder), a.holderRank(here.Holder))
		})
		n := min(len(leases), maxRowLeases)
		for i := range leases {
			leases[i].Recent = leases[i].Held < elapsed(12*time.Hour)
		}
		rows = append(rows, row{
			Name: l.Name, State: l.State, Token: l.Token, Sharing: sharingOf(l), Leases: leases[:n],
			More: len(leases) - n, Waiters: l.Waiters, Below: l.WaitersBelow,
			Closed: l.Closed != nil, Frozen: l.Frozen != nil, URL: page.URL(), Obstacle: obstacleOf(l, here.filter),
		})
	}
	return rows
}

// holderRank returns 1 for a lease of the filter's holder and 0 otherwise, so that sorting puts these leases first and
// none is cut off.
func (l lease) holderRank(holder string) int {
	if holder != "" && l.Holder == holder {
		return 1
	}
	return 0
}

// Lines returns the number of table rows for the lock.
func (r row) Lines() int {
	n := max(len(r.Leases), 1)
	if r.More > 0 {
		n++
	}
	return n
}

// A sharing describes the mode of a lock and the number of its holders.
type sharing struct {
	Mode string // empty without a holder
	Of   string // the number of holders; empty for an exclusive one
}

func sharingOf(l lock.Lock) sharing {
	if len(l.Leases) == 0 {
		return sharing{}
	}
	s := sharing{Mode: l.Leases[0].Mode.String()}
	switch l.Leases[0].Mode {
	case lock.Shared:
		s.Of = countOf(len(l.Leases), "holder", "holders") + ", one token"
	case lock.Permit:
		s.Of = fmt.Sprintf("%d of %d out", l.PermitsOut(), l.Capacity)
	}
	return s
}

// countOf returns the number and the singular or plural.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxBlockers bounds the leases that the page names for a waiter.
const maxBlockers = 3

// A queue is a queue as the page shows it.
type queue struct {
	Waiters []waiter
	Count   int // all waiters
	More    int // waiters that are not shown
	Away    int // disconnected waiters
	Chain   *chain
}

// A chain is what the first waiter waits for in the end.
type chain struct {
	Steps      []chainStep
	Conclusion string
}

// A chainStep is one waiting call of a chain.
type chainStep struct {
	lock.DeadlockStep
	On    namedLock  // that it waits for
	There *namedLock // its At; nil: none
}

// Past reports whether the step is told in the past tense.
func (chainStep) Past() bool { return false }

// chainOf returns the chain; nil if the waiters show it already.
func chainOf(c *lock.WaitChain, from filter) *chain {
	if c == nil || c.Plain() {
		return nil
	}
	shown := &chain{Conclusion: c.Conclusion()}
	for _, s := range c.Steps {
		shown.Steps = append(shown.Steps, chainStep{s, nameOf(s.Name, from), there(s, from)})
	}
	return shown
}

// there returns the lock of what is in the way of the step, if that is not the lock which the step waits for.
func there(s lock.DeadlockStep, from filter) *namedLock {
	if s.At == "" {
		return nil
	}
	at := nameOf(s.At, from)
	return &at
}

// A waiter is a waiter as the page shows it.
type waiter struct {
	lock.WaiterInfo
	Waited elapsed
	Kept   timeLeft
	For    []blocker // what blocks it, or the first of the waiters ahead
	More   int       // blocking leases that are not in For

	Frozen bool // it waits for the end of a freeze of the lock, for BlockedByClosure; otherwise, a release has closed it

	Below *namedLock  // the lock that it waits for, if that is below the page's in a tree
	At    *namedLock  // the lock at which it is blocked, for BlockedByQueue and BlockedByClosure; nil: the page's
	With  *otherLocks // of its set; nil: none
}

// A blocker is a lease that blocks a waiter.
type blocker struct {
	lock.LeaseInfo
	Left timeLeft
	Over timeLeft   // until the grace has ended
	On   *namedLock // its lock, if that is above or below the page's in a tree
}

func blockerOf(h lock.LeaseInfo, asOf time.Time, from filter) blocker {
	b := blocker{LeaseInfo: h, Left: timeLeft(h.Remaining), Over: timeLeft(h.ExpiresAt.Add(h.Grace).Sub(asOf))}
	if h.Name != "" {
		on := nameOf(h.Name, from)
		b.On = &on
	}
	return b
}

// Slotted reports whether the lease needs a slot to identify it.
func (b blocker) Slotted() bool { return b.Mode != lock.Exclusive && b.On == nil }

func queueOf(q lock.QueueInfo, here location) queue {
	v := queue{Count: len(q.Waiters), Chain: chainOf(q.Chain, here.filter)}
	var connected []lock.WaiterInfo
	for i, w := range q.Waiters {
		if i < maxShown || here.All {
			v.Waiters = append(v.Waiters, waiterOf(w, connected, q.AsOf, here))
		}
		if w.Attached {
			connected = append(connected, w)
		} else {
			v.Away++
		}
	}
	v.More = v.Count - len(v.Waiters)
	return v
}

// waiterOf returns the waiter. If connected waiters are ahead of it, they wait, as it does, for the leases that block the
// first of them.
func waiterOf(w lock.WaiterInfo, ahead []lock.WaiterInfo, asOf time.Time, here location) waiter {
	here.Lock = cmp.Or(w.Name, here.Lock)
	ahead = slices.DeleteFunc(slices.Clone(ahead), w.MayOvertake)
	v := waiter{
		WaiterInfo: w, Waited: elapsed(w.Waited), Kept: timeLeft(w.KeptFor),
		With: otherLocksOf(w.Set, here, fmt.Sprintf("place %d", w.Place)),
	}
	if w.BlockedBy != lock.BlockedByHolders && w.BlockedAt != "" {
		at := nameOf(w.BlockedAt, here.filter)
		v.At = &at
	}
	leases := w.Leases
	if w.BlockedBy == lock.BlockedByQueue && len(ahead) > 0 {
		leases = ahead[0].Leases
	}
	for _, h := range leases[:min(len(leases), maxBlockers)] {
		v.For = append(v.For, blockerOf(h, asOf, here.filter))
	}
	v.More = len(leases) - len(v.For)
	return v
}

// A timeLeft is remaining time.
type timeLeft time.Duration

// Millis returns whole milliseconds, for the script to count down.
func (s timeLeft) Millis() int64 { return max(time.Duration(s).Milliseconds(), 0) }

// String returns the time in words, rounded up to seconds.
func (s timeLeft) String() string {
	ms := s.Millis()
	if ms == 0 {
		return "ended"
	}
	return words(time.Duration((ms+999)/1000) * time.Second)
}

// An elapsed is elapsed time.
type elapsed time.Duration

// Millis returns whole milliseconds, for the script to count up.
func (a elapsed) Millis() int64 { return max(time.Duration(a).Milliseconds(), 0) }

// String returns the time in words, rounded down to seconds.
func (a elapsed) String() string { return words(time.Duration(a)) }

// words returns a duration in its two greatest units, rounded down to seconds, as the script does.
func words(d time.Duration) string { return lock.InWords(d.Truncate(time.Second)) }
