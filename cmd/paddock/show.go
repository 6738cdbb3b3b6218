package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// showLease returns the output for a lease of the caller, with its secret.
func showLease(g lock.Grant) output {
	return output{wire: wire.LeaseOf(g), env: variablesFrom(g), table: func(t table) {
		t.row("LOCK", g.Name)
		t.row("LEASE ID", uuid.UUID(g.ID).String())
		t.row("TOKEN", token(g.Token))
		t.row("MODE", modeAndSlot(g.Mode, g.Slot))
		t.row("HOLDER", g.Holder)
		t.row("EXPIRES", fmt.Sprintf("%s (in %s)", local(g.ExpiresAt), short(max(time.Until(g.Until), 0))))
		if g.Metadata != nil {
			t.row("METADATA", string(g.Metadata))
		}
	}}
}

// variablesFrom returns the shell variables of a lease. PADDOCK_SLOT is unset for an exclusive lease.
func variablesFrom(g lock.Grant) []variable {
	slot := ""
	if g.Slot > 0 {
		slot = strconv.Itoa(g.Slot)
	}
	return []variable{
		{"PADDOCK_LOCK", g.Name}, {"PADDOCK_LEASE_ID", uuid.UUID(g.ID).String()},
		{"PADDOCK_FENCING_TOKEN", token(g.Token)},
		{"PADDOCK_SLOT", slot}, {"PADDOCK_EXPIRES_AT", g.ExpiresAt.UTC().Format(time.RFC3339Nano)},
	}
}

// showLock returns the output for a lock. Its variables differ from those of a lease, so that a script cannot use
// another holder's token as its own.
func showLock(l lock.Lock) output {
	return output{wire: wire.LockOf(l), env: []variable{
		{"PADDOCK_STATE", string(l.State)}, {"PADDOCK_NEWEST_TOKEN", strconv.FormatInt(int64(l.Token), 10)},
		{"PADDOCK_HELD_BY", firstOf(l).Holder}, {"PADDOCK_WAITERS", strconv.Itoa(l.Waiters)},
	}, table: func(t table) {
		t.row("LOCK", l.Name)
		t.row("STATE", string(l.State))
		t.row("NEWEST TOKEN", token(l.Token))
		t.row("CHANGED", local(l.ChangedAt))
		if l.Capacity > 0 {
			t.row("PERMITS", fmt.Sprintf("%d of %d taken", len(l.Leases), l.Capacity))
		}
		t.row("WAITING", strconv.Itoa(l.Waiters))
		t.row()
		t.row("HOLDER", "MODE", "TOKEN", "ACQUIRED", "EXPIRES", "LEFT", "METADATA")
		for _, h := range l.Leases {
			t.row(h.Holder, modeAndSlot(h.Mode, h.Slot), token(h.Token), local(h.AcquiredAt), local(h.ExpiresAt),
				remaining(h), cmp.Or(string(h.Metadata), none))
		}
	}}
}

// showLocks returns the output for many locks, one a row.
func showLocks(locks []lock.Lock) output {
	return output{wire: wire.Each(locks, wire.LockOf), table: func(t table) {
		t.row("LOCK", "STATE", "MODE", "TOKEN", "HOLDER", "EXPIRES", "LEFT", "WAITING")
		for _, l := range locks {
			if len(l.Leases) == 0 {
				t.row(l.Name, string(l.State), none, token(l.Token), none, none, none, strconv.Itoa(l.Waiters))
				continue
			}
			h := firstOf(l)
			holders := h.Holder
			if n := len(l.Leases) - 1; n > 0 {
				holders += fmt.Sprintf(" and %d more", n)
			}
			t.row(l.Name, string(l.State), h.Mode.String(), token(l.Token), holders, local(h.ExpiresAt), remaining(h),
				strconv.Itoa(l.Waiters))
		}
	}}
}

// showQueue returns the output for the waiters of a lock.
func showQueue(q lock.QueueInfo) output {
	return output{wire: wire.QueueOf(q), table: func(t table) {
		t.row("POSITION", "HOLDER", "MODE", "JOINED", "WAITED", "BLOCKED BY")
		for _, w := range q.Waiters {
			t.row(strconv.Itoa(w.Position), w.Holder, w.Mode.String(), local(w.JoinedAt), short(w.Waited), blockedBy(w))
		}
	}}
}

// blockedBy returns what blocks a waiter.
func blockedBy(w lock.WaiterInfo) string {
	switch {
	case w.BlockedBy == lock.BlockedByQueue:
		return fmt.Sprintf("the queue, %d ahead", w.Ahead)
	case w.BlockedBy == lock.BlockedByDisconnect:
		return fmt.Sprintf("its disconnect, place kept for %s", short(w.KeptFor))
	case len(w.Leases) == 0:
		return "the lock"
	}
	text := fmt.Sprintf("%s (token %d)", w.Leases[0].Holder, w.Leases[0].Token)
	if n := len(w.Leases) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// firstOf returns the first lease of a lock, zero if there is none.
func firstOf(l lock.Lock) lock.LeaseInfo {
	if len(l.Leases) == 0 {
		return lock.LeaseInfo{}
	}
	return l.Leases[0]
}

// remaining returns the time left of a lease, or that it is in its grace, or revoked.
func remaining(h lock.LeaseInfo) string {
	if h.Revoked {
		return "revoked, grace"
	}
	if h.Remaining == 0 && h.Grace > 0 {
		return "grace"
	}
	return short(h.Remaining)
}

func modeAndSlot(m lock.Mode, slot int) string {
	if slot == 0 {
		return m.String()
	}
	return fmt.Sprintf("%s, slot %d", m, slot)
}

// token returns a token as text, or the text for no token.
func token(t lock.Token) string {
	if t == 0 {
		return none
	}
	return strconv.FormatInt(int64(t), 10)
}
