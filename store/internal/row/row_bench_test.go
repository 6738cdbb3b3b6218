package row

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// BenchmarkEntry parses the events of a grant and of what ended before it.
func BenchmarkEntry(b *testing.B) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := lock.Event{Slot: 1, Revision: 17, Kind: lock.Granted, Mode: lock.Exclusive, Holder: "worker 7", Token: 1 << 40, At: at}
	element := appendEntry(nil, "jobs:nightly", 1<<30, 3, 0, []lock.Event{e, e}, at)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEntry(element, 1<<31, at); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOneLock reads a lock, and writes it with an event: the allocations are those of this process.
func BenchmarkOneLock(b *testing.B) {
	conn := pgtest.Conn(b)
	v, err := Look{Names: []string{"a"}, Create: []string{"a"}}.Run(b.Context(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("look", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v, err = (Look{Names: []string{"a"}, Create: []string{"a"}}).Run(b.Context(), conn); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("swap", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
			s.Latest = s.Latest.Add(time.Hour)
			if _, err := s.Run(b.Context(), conn); err != nil || !s.Changes[0].Written {
				b.Fatal(err)
			}
			v.Rows["a"] = s.Changes[0].Left()
		}
	})
	b.Run("encode", func(b *testing.B) {
		s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
		b.ReportAllocs()
		for b.Loop() {
			s.encode()
		}
	})
}
