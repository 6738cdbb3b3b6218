package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// The widest bounds there are. A deployment may narrow those of the TTL and the
// grace, see Bounds.
const (
	MinTTL   = 100 * time.Millisecond
	MaxTTL   = 24 * time.Hour
	MaxGrace = time.Minute
	MaxHold  = 366 * 24 * time.Hour
	// DefaultTTL is the TTL of an acquire that asks for none.
	DefaultTTL = 30 * time.Second
)

// Bounds are what a deployment allows. The zero value allows the widest.
type Bounds struct {
	MinTTL     time.Duration // zero: ShortestTTL
	MaxTTL     time.Duration // zero: LongestTTL
	DefaultTTL time.Duration // zero: UsualTTL, or the nearest that is allowed
	MaxGrace   time.Duration // zero: LongestGrace; negative: none allowed
	MaxWaiters int           // for one lock; zero: UsualMaxWaiters, which says what counts
}

// Resolve returns b with its zero fields filled in, or an error that says which
// fields do not go together.
func (b Bounds) Resolve() (Bounds, error) {
	b.MinTTL = cmp.Or(b.MinTTL, MinTTL)
	b.MaxTTL = cmp.Or(b.MaxTTL, MaxTTL)
	b.DefaultTTL = cmp.Or(b.DefaultTTL, min(max(DefaultTTL, b.MinTTL), b.MaxTTL))
	b.MaxGrace = max(cmp.Or(b.MaxGrace, MaxGrace), 0)
	b.MaxWaiters = cmp.Or(b.MaxWaiters, DefaultMaxWaiters)
	switch {
	case b.MinTTL < MinTTL:
		return b, fmt.Errorf("the least TTL, %v, is below %v", b.MinTTL, MinTTL)
	case b.MaxTTL > MaxTTL:
		return b, fmt.Errorf("the greatest TTL, %v, is above %v", b.MaxTTL, MaxTTL)
	case b.MaxGrace > MaxGrace:
		return b, fmt.Errorf("the greatest grace, %v, is above %v", b.MaxGrace, MaxGrace)
	case b.MaxWaiters < 0:
		return b, fmt.Errorf("the greatest number of waiters for a lock, %d, is below zero", b.MaxWaiters)
	case b.DefaultTTL < b.MinTTL || b.DefaultTTL > b.MaxTTL:
		return b, fmt.Errorf("the default TTL, %v, is not between the least, %v, and the greatest, %v", b.DefaultTTL, b.MinTTL, b.MaxTTL)
	}
	return b, nil
}

func checkDuration(field string, d, least, greatest time.Duration) error {
	if d < least || d > greatest {
		return Invalid(field, "is %d; give %d to %d (milliseconds)",
			d.Milliseconds(), least.Milliseconds(), greatest.Milliseconds())
	}
	return nil
}

func checkMetadata(m json.RawMessage) error {
	if m == nil {
		return nil
	}
	if len(m) > MaxMetadataSize {
		return Invalid("metadata", "has %d bytes; at most %d are allowed", len(m), MaxMetadataSize)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(m, &object); err != nil || object == nil || !utf8.Valid(m) {
		return Invalid("metadata", "must be a JSON object in UTF-8")
	}
	return checkNumbers("metadata", m)
}

// checkNumbers returns an ErrInvalid error if a number anywhere in value, which is valid JSON, is beyond the range of
// a float64. JavaScript and others would read it as infinity.
func checkNumbers(field string, value json.RawMessage) error {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return Invalid(field, "has a number that is beyond the range of a 64-bit float; send a smaller one, or a string")
	}
	return nil
}
