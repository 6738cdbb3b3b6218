package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A lease is a holding in words.
type lease struct {
	lock.LeaseInfo
	Name     string // of the lock
	State    lock.State
	Metadata string // indented; empty if there is none
	Held     elapsed
	Left     timeLeft
	Grace    timeLeft // after the end
	Over     timeLeft // until the lock may be somebody else's
	Back     string   // the place that a revocation leads back to

	Revocable bool // whether the reader is offered to revoke it
}

// leasesOf returns the leases of l in the order of their slots, as shown to the reader.
func leasesOf(l lock.Lock, back location, to reader) []lease {
	leases := make([]lease, 0, len(l.Leases))
	for _, h := range l.Leases {
		one := leaseOf(l.Name, h, l.AsOf, back.Encode())
		one.Revocable = to.mayRevoke()
		leases = append(leases, one)
	}
	slices.SortStableFunc(leases, func(a, b lease) int { return cmp.Compare(a.Slot, b.Slot) })
	return leases
}

func leaseOf(name string, h lock.LeaseInfo, asOf time.Time, back string) lease {
	l := lease{
		LeaseInfo: h, Name: name, State: lock.Held, Metadata: indentJSON(h.Metadata), Back: back,
		Held: elapsed(asOf.Sub(h.AcquiredAt)), Left: timeLeft(h.Remaining), Grace: timeLeft(h.Grace),
		Over: timeLeft(h.ExpiresAt.Add(h.Grace).Sub(asOf)),
	}
	if h.Remaining <= 0 {
		l.State = lock.InGrace
	}
	return l
}

// Alone is whether the lease is exclusive. Others are told apart by their slots.
func (l lease) Alone() bool { return l.Mode == lock.Exclusive }

// Key tells the lease from all others, also from the next in its slot with the
// same token, so that the script finds it again in a newer page.
func (l lease) Key() string {
	return fmt.Sprintf("%s/%d/%d/%d", l.Name, l.Slot, l.Token, l.AcquiredAt.UnixMicro())
}

// leasesWithToken returns those of l that have the token, and sit in the slot if there is one.
func leasesWithToken(l lock.Lock, token lock.Token, slot *int) []lock.LeaseInfo {
	return slices.DeleteFunc(slices.Clone(l.Leases), func(h lock.LeaseInfo) bool {
		return h.Token != token || slot != nil && *slot != h.Slot
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
