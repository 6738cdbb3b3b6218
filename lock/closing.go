package lock

import (
	"cmp"
	"time"
)

// MaxClosed is the longest time that a lock can be closed for.
const MaxClosed = 31 * 24 * time.Hour

// A Closing says for how long a [Release] closes its locks, so that work is done once: they are granted to no client
// until the later one of its two instants. Both are counted from the grant of the lease, on the database's clock: work
// that goes on into the next period was that of the period in which it began. If both have passed, or the lease ends in
// another way, the locks stay open, and the work is done again.
type Closing struct {
	For    time.Duration // since the grant, up to MaxClosed
	Period Period        // until the end of the period of the wall clock in which the lease was granted; empty: none
	Zone   string        // the IANA name of the time zone of the Period, such as Europe/Berlin; empty: UTC

	zone *time.Location // of the Zone, set by resolve
}

// A Period is a part of the calendar.
type Period string

// The periods. A week begins on Monday.
const (
	Minute Period = "minute"
	Hour   Period = "hour"
	Day    Period = "day"
	Week   Period = "week"
	Month  Period = "month"
)

// Periods returns all periods.
func Periods() []Period { return []Period{Minute, Hour, Day, Week, Month} }

// A Closure says that a lock is closed, or was before its next grant: the work is done.
type Closure struct {
	Until  time.Time
	Holder string    // of the lease that was released
	At     time.Time // of the release
}

// asks reports whether c asks to close the lock.
func (c Closing) asks() bool { return c.For != 0 || c.Period != "" }

// field returns the field of a request that asks to close the lock.
func (c Closing) field() string {
	if c.For != 0 {
		return "closed_ms"
	}
	return "once_per"
}

// resolve returns c with its time zone, or an ErrInvalid error.
func (c Closing) resolve() (Closing, error) {
	err := CheckDuration("closed_ms", c.For, 0, MaxClosed)
	switch c.Period {
	case "":
		if c.Zone != "" {
			err = cmp.Or(err, Invalid("time_zone", "is only valid with once_per; leave it out"))
		}
		return c, err
	case Minute, Hour, Day, Week, Month:
	default:
		return c, cmp.Or(err, Invalid("once_per", "is invalid; use minute, hour, day, week or month"))
	}
	var unknown error
	if c.zone, unknown = time.LoadLocation(c.Zone); unknown != nil || c.Zone == "Local" {
		err = cmp.Or(err, Invalid("time_zone", "is unknown; give a name of the IANA database, such as Europe/Berlin, or leave it out for UTC"))
	}
	return c, err
}

// until returns until when c closes a lock whose lease was granted at the instant.
func (c Closing) until(granted time.Time) time.Time {
	end := granted.Add(c.For)
	if c.Period != "" {
		if of := c.Period.end(granted.In(c.zone)); of.After(end) {
			end = of
		}
	}
	return end.UTC()
}

// end returns the end of the period that contains the instant, in its time zone.
func (p Period) end(t time.Time) time.Time {
	year, month, day := t.Date()
	switch p {
	case Minute:
		return nextMultiple(t, time.Minute)
	case Hour:
		return nextMultiple(t, time.Hour)
	case Week:
		day += 7 - (int(t.Weekday())+6)%7
	case Month:
		month, day = month+1, 1
	default:
		day++
	}
	begins := time.Date(year, month, day, 0, 0, 0, 0, time.UTC) // the date as a number
	end := time.Date(year, month, day, 0, 0, 0, 0, t.Location())
	for before(end, begins) { // the clock is set forward at midnight
		end = nextMultiple(end, time.Minute)
	}
	return end
}

// before reports whether the date of t in its time zone is before that of the other one.
func before(t, other time.Time) bool {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Before(other)
}

// nextMultiple returns the next instant at which the wall clock of t shows a multiple of d.
func nextMultiple(t time.Time, d time.Duration) time.Time {
	_, offset := t.Zone()
	shift := time.Duration(offset) * time.Second
	return t.Add(shift).Truncate(d).Add(d - shift)
}
