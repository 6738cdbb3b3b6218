package row

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// The schema refuses most of what is refused here, see the constraints can_be_read. These are for rows from before, and
// for what a constraint cannot tell.

const (
	// maxWhole is the greatest number that JSON can have everywhere.
	maxWhole = int64(lock.MaxToken)
	// maxMillis bounds durations: it is three years, longer than each one that can be requested.
	maxMillis = int64(100_000_000_000)
)

// malformedRecord returns the error for the record of the lock.
func malformedRecord(name string, cause error) error {
	return &database.MalformedError{Name: name, Table: "records", Key: "name = " + quoted(name), Cause: cause}
}

// malformedPart returns the error for the part of a lock.
func malformedPart(p *part, cause error) error {
	key := fmt.Sprintf("name = %s, slot = %d, place = %d", quoted(p.name.String), p.slot.Int32, p.place.Int64)
	return &database.MalformedError{Name: p.name.String, Table: "parts", Key: key, Cause: cause}
}

// malformedSession returns the error for the session.
func malformedSession(ref lock.SessionRef, cause error) error {
	return &database.MalformedError{Name: ref.String(), Table: "sessions", Key: fmt.Sprintf("ref = %d", int64(ref)), Cause: cause}
}

func quoted(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }

// check returns an error unless the record's own columns can be read.
func (s *storedRecord) check() error {
	err := inRange("token", s.token.Int64, maxWhole)
	if err == nil {
		err = inRange("revision", s.revision.Int64, maxWhole)
	}
	if err == nil {
		err = inRange("parts", int64(s.parts.Int32), 1_000_000)
	}
	if err == nil {
		err = finite("changed_at", s.changedAt)
	}
	return err
}

// check returns an error unless the lease or waiter can be read.
func (s *storedLease) check(r rest) error {
	if err := inRange("mode", int64(s.mode.Int16), int64(lock.IntentionExclusive)); err != nil {
		return err
	}
	for _, c := range []struct {
		column string
		value  int64
	}{{"ttl_ms", s.ttl.Int64}, {"grace in rest", r.Grace}, {"max_hold in rest", r.MaxHold}, {"left in rest", r.Left}} {
		if err := inRange(c.column, c.value, maxMillis); err != nil {
			return err
		}
	}
	if err := inRange("permits in rest", int64(r.Permits), lock.MaxHolders); err != nil {
		return err
	}
	if err := finite("acquired_at", s.acquiredAt); err != nil {
		return err
	}
	return finite("expires_at", s.expiresAt)
}

// check returns an error unless the session can be read.
func (s *storedSession) check() error {
	err := inRange("ttl_ms", s.ttl.Int64, maxMillis)
	if err == nil {
		err = inRange("grace_ms", s.grace.Int64, maxMillis)
	}
	if err == nil {
		err = inRange("revoked_leases", s.revokedLeases.Int64, maxWhole)
	}
	for _, at := range []pgtype.Timestamptz{s.openedAt, s.expiresAt, s.endedAt} {
		if err == nil {
			err = finite("an instant", at)
		}
	}
	return err
}

// checkSlots returns an error unless the slots of several permits can be read.
func checkSlots(l *lock.Lease) error {
	if l.Slots.IsValid(l.Slot) {
		return nil
	}
	return fmt.Errorf("slots in rest are %q, not those of a lease in slot %d", l.Slots, l.Slot)
}

func inRange(column string, value, most int64) error {
	if value < 0 || value > most {
		return fmt.Errorf("%s is %d, not from 0 to %d", column, value, most)
	}
	return nil
}

// finite returns an error unless the instant has a form in JSON.
func finite(column string, at pgtype.Timestamptz) error {
	if at.InfinityModifier != pgtype.Finite {
		return fmt.Errorf("%s is %v", column, at.InfinityModifier)
	}
	if year := at.Time.Year(); year > 9999 || year < 0 {
		return fmt.Errorf("%s is in the year %d", column, year)
	}
	return nil
}
