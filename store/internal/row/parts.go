package row

import (
	"bytes"

	"github.com/paddock-lock/paddock/lock"
)

// addLeases adds the leases in slots that differ.
func (c *columns) addLeases(ord int32, before, after *lock.Record) error {
	was := make(map[int]*lock.Lease, len(before.Leases))
	for i := range before.Leases {
		was[before.Leases[i].Slot] = &before.Leases[i]
	}
	for i := range after.Leases {
		l := &after.Leases[i]
		if old := was[l.Slot]; l.Slot > 0 && (old == nil || !sameLease(old, l)) {
			c.savePart(ord, after.Name, l.Slot, 0, false, int64(l.Token), int64(l.Attachment), 0)
			if err := c.saved.add(l, restOf(l)); err != nil {
				return err
			}
		}
		delete(was, l.Slot)
	}
	for slot := range was {
		if slot > 0 {
			c.dropPart(ord, after.Name, slot, 0)
		}
	}
	return nil
}

// sameLease reports whether two leases are equal in everything that a decision can change.
func sameLease(a, b *lock.Lease) bool {
	return a.ID == b.ID && a.ExpiresAt.Equal(b.ExpiresAt) && a.TTL == b.TTL && a.Token == b.Token && a.Attachment == b.Attachment &&
		a.ClaimDeadline.Equal(b.ClaimDeadline) && a.AcquiredAt.Equal(b.AcquiredAt) && bytes.Equal(a.Metadata, b.Metadata)
}

// addWaiters adds the waiters that differ. Both queues are in the order of places. A waiter that is the same in both costs
// one comparison, so a long queue with few changes is cheap.
func (c *columns) addWaiters(ord int32, before, after *lock.Record) error {
	left := before.Queue
	for _, w := range after.Queue {
		for len(left) > 0 && left[0].Place < w.Place {
			c.dropPart(ord, after.Name, 0, left[0].Place)
			left = left[1:]
		}
		same := false
		if len(left) > 0 && left[0].Place == w.Place {
			same = sameWaiter(left[0], w)
			left = left[1:]
		}
		if same {
			continue
		}
		c.savePart(ord, after.Name, 0, w.Place, w.GrantedUnclaimed, 0, int64(w.Attachment), int64(w.Replica))
		l := w.Lease
		l.AcquiredAt, l.ExpiresAt = w.JoinedAt, w.WaitUntil
		r := restOf(&l)
		r.Capacity, r.AliveUntil, r.KeptUntil = w.Capacity, micros(w.AliveUntil), micros(w.KeptUntil)
		if err := c.saved.add(&l, r); err != nil {
			return err
		}
	}
	for _, w := range left {
		c.dropPart(ord, after.Name, 0, w.Place)
	}
	return nil
}

// sameWaiter reports whether two waiters are equal in everything that a decision can change.
func sameWaiter(a, b *lock.Waiter) bool {
	return a == b || a.Attachment == b.Attachment && a.Replica == b.Replica && a.WaitUntil.Equal(b.WaitUntil) &&
		a.KeptUntil.Equal(b.KeptUntil) && a.GrantedUnclaimed == b.GrantedUnclaimed
}

func (c *columns) dropPart(ord int32, name string, slot int, place int64) {
	d := &c.dropped
	d.ords, d.names = append(d.ords, ord), append(d.names, name)
	d.slots, d.places = append(d.slots, int32(slot)), append(d.places, place)
}

// savePart adds all of a part but its lease.
func (c *columns) savePart(ord int32, name string, slot int, place int64, unclaimed bool, token, attachment, replica int64) {
	s := &c.saved
	s.ords, s.names = append(s.ords, ord), append(s.names, name)
	s.slots, s.places = append(s.slots, int32(slot)), append(s.places, place)
	s.unclaimed, s.tokens = append(s.unclaimed, unclaimed), append(s.tokens, token)
	s.attachments, s.replica = append(s.attachments, attachment), append(s.replica, replica)
}
