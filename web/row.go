package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A row is a lease, or a lock that has none.
type row struct {
	Name  string
	State lock.Phase
	Token lock.Token // the lease's, or the newest granted; zero if there was none
	Lease *lease     // nil: the lock is free
	Back  string     // the list's filter
}

// A lease is a holding in words.
type lease struct {
	lock.Holding
	Kind     string // what tells it from an exclusive lease; empty for one
	Metadata string // indented; empty if there is none
	Held     string // for how long
	Left     span
	Grace    span // after the end
	Over     span // until the lock may be somebody else's
}

func rowsOf(locks []lock.Lock, back string) []row {
	var rows []row
	for _, l := range locks {
		if len(l.Leases) == 0 {
			rows = append(rows, row{Name: l.Name, State: lock.Free, Token: l.Token, Back: back})
		}
		for _, h := range l.Leases {
			rows = append(rows, row{Name: l.Name, State: phaseOf(h), Token: h.Token, Lease: leaseOf(h, l.AsOf), Back: back})
		}
	}
	return rows
}

func phaseOf(h lock.Holding) lock.Phase {
	if h.Remaining > 0 {
		return lock.Held
	}
	return lock.InGrace
}

func leaseOf(h lock.Holding, asOf time.Time) *lease {
	l := &lease{
		Holding: h, Metadata: indented(h.Metadata), Held: words(asOf.Sub(h.AcquiredAt)),
		Left: span(h.Remaining), Grace: span(h.Grace), Over: span(h.ExpiresAt.Add(h.Grace).Sub(asOf)),
	}
	if h.Mode != lock.Exclusive {
		l.Kind = fmt.Sprintf("%s, slot %d", h.Mode, h.Slot)
	}
	return l
}

// Levels returns the name in pieces, behind each of which a line may break.
func (r row) Levels() []string { return strings.SplitAfter(r.Name, ":") }

// Key tells the row from the others, so that the script finds it again in a newer list.
func (r row) Key() string {
	if r.Lease == nil {
		return r.Name
	}
	return fmt.Sprintf("%s/%d/%d", r.Name, r.Lease.Slot, r.Token)
}

// holding returns the holding of l that has the token, nil if there is none.
func holding(l lock.Lock, token lock.Token) *lock.Holding {
	for _, h := range l.Leases {
		if h.Token == token {
			return &h
		}
	}
	return nil
}

func indented(m json.RawMessage) string {
	if len(m) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, m, "", "  "); err != nil {
		return string(m)
	}
	return strings.TrimSpace(b.String())
}

// A span is time that runs down.
type span time.Duration

// Millis returns the span in whole milliseconds, for the script to count down.
func (s span) Millis() int64 { return max(time.Duration(s).Milliseconds(), 0) }

// String returns the span in words, with a second that has begun counted in full.
func (s span) String() string {
	ms := s.Millis()
	if ms == 0 {
		return "ended"
	}
	return words(time.Duration((ms+999)/1000) * time.Second)
}

// words returns a length of time in its two greatest units. The script has the same rule.
func words(d time.Duration) string {
	switch s := max(int64(d/time.Second), 0); {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
}
