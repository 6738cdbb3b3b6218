package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode"
	"unicode/utf8"
)

// The widest bounds of durations. Those of the TTL and the grace can be narrowed with Bounds.
const (
	MinTTL   = 100 * time.Millisecond
	MaxTTL   = 24 * time.Hour
	MaxGrace = time.Minute
	MaxHold  = 366 * 24 * time.Hour
	// DefaultTTL is the TTL of an Acquire that gives none.
	DefaultTTL = 30 * time.Second
	// MaxWait is the longest wait of one call. It is short because load balancers close idle connections after a
	// minute.
	MaxWait = 50 * time.Second
)

// Timeouts of waiting.
const (
	// PlaceRetention is how long the place of a detached waiter is kept at least, and after a whole wait with KeepPlace.
	PlaceRetention = 10 * time.Second
	// ReplicaTTL is how long a replica counts as alive after its last heartbeat.
	ReplicaTTL = 2 * time.Second
	// ClaimTimeout is how long a grant to a waiter of another replica stays unclaimed before it is withdrawn. The TTL
	// starts when it is claimed.
	ClaimTimeout = 2 * time.Second
)

// Bounds of a lock.
const (
	// MaxHolders is the maximum number of leases of a lock.
	MaxHolders = 1000
	// DefaultMaxWaiters is the maximum number of waiters of a lock, unless the Bounds say otherwise. The place of a
	// detached waiter counts for PlaceRetention.
	DefaultMaxWaiters = 1000
	// DefaultMaxSessionLeases is the maximum number of leases and places of a session, unless the Bounds say
	// otherwise.
	DefaultMaxSessionLeases = 100_000
)

// Bounds of text and metadata.
const (
	// MaxNameLength is the maximum length of a lock's name and of a fenced key, in bytes.
	MaxNameLength = 200
	// MaxHolderLength is the maximum length of a holder, in characters.
	MaxHolderLength = 200
	// MaxReasonLength is the maximum length of the reason of a revocation, in characters.
	MaxReasonLength = 500
	// MaxOperationIDLength is the maximum length of the OperationID of a FencedWrite, in characters.
	MaxOperationIDLength = 200
	// MaxWhereLength is the maximum length of the Where of a ReportStale, in characters. The longest key of a fenced
	// value, with the words before it, is shorter.
	MaxWhereLength = 250
	// MaxMetadataSize is the maximum size of a lease's metadata, in bytes of JSON.
	MaxMetadataSize = 4096
)

// Bounds are the limits of a deployment. The zero value allows the widest.
type Bounds struct {
	MinTTL     time.Duration // zero: the constant MinTTL
	MaxTTL     time.Duration // zero: the constant MaxTTL
	DefaultTTL time.Duration // zero: the constant DefaultTTL, or the nearest allowed value
	MaxGrace   time.Duration // zero: the constant MaxGrace; negative: no grace allowed
	MaxWaiters int           // of one lock; zero: DefaultMaxWaiters
	// MaxSessionLeases limits the leases and places of a session. Leases that are granted at the same time may
	// exceed it. Zero: DefaultMaxSessionLeases.
	MaxSessionLeases int
}

// Resolve returns b with its zero fields filled in, or an error that names the invalid limit.
func (b Bounds) Resolve() (Bounds, error) {
	b.MinTTL = cmp.Or(b.MinTTL, MinTTL)
	b.MaxTTL = cmp.Or(b.MaxTTL, MaxTTL)
	b.DefaultTTL = cmp.Or(b.DefaultTTL, min(max(DefaultTTL, b.MinTTL), b.MaxTTL))
	b.MaxGrace = max(cmp.Or(b.MaxGrace, MaxGrace), 0)
	b.MaxWaiters = cmp.Or(b.MaxWaiters, DefaultMaxWaiters)
	b.MaxSessionLeases = cmp.Or(b.MaxSessionLeases, DefaultMaxSessionLeases)
	switch {
	case b.MinTTL < MinTTL:
		return b, fmt.Errorf("the minimum TTL, %v, is below %v", b.MinTTL, MinTTL)
	case b.MaxTTL > MaxTTL:
		return b, fmt.Errorf("the maximum TTL, %v, is above %v", b.MaxTTL, MaxTTL)
	case b.MaxGrace > MaxGrace:
		return b, fmt.Errorf("the maximum grace, %v, is above %v", b.MaxGrace, MaxGrace)
	case b.MaxWaiters < 0:
		return b, fmt.Errorf("the maximum number of waiters of a lock, %d, is negative", b.MaxWaiters)
	case b.MaxSessionLeases < 0:
		return b, fmt.Errorf("the maximum number of leases of a session, %d, is negative", b.MaxSessionLeases)
	case b.DefaultTTL < b.MinTTL || b.DefaultTTL > b.MaxTTL:
		return b, fmt.Errorf("the default TTL, %v, is not between the minimum, %v, and the maximum, %v",
			b.DefaultTTL, b.MinTTL, b.MaxTTL)
	}
	return b, nil
}

// CheckName returns an ErrInvalid error unless name is a valid lock name: 1 to MaxNameLength of the characters A-Z
// a-z 0-9 . _ : @ -, beginning with a letter or a digit. Names are compared byte by byte. A colon separates levels; a
// slash is not allowed, because proxies rewrite it.
func CheckName(name string) error { return CheckNameOf("name", name) }

// CheckKey returns an ErrInvalid error unless key is a valid key of a fenced resource. The rules are those of
// CheckName.
func CheckKey(key string) error { return CheckNameOf("key", key) }

// CheckNameOf is CheckName for a name in another field of a request, which the error names.
func CheckNameOf(field, name string) error {
	switch {
	case name == "":
		return Invalid(field, "is empty; give 1 to %d characters", MaxNameLength)
	case len(name) > MaxNameLength:
		return Invalid(field, "has %d bytes; at most %d are allowed", len(name), MaxNameLength)
	case !isAlphanumeric(name[0]):
		return Invalid(field, "must begin with a letter or a digit")
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return Invalid(field, "has an invalid character at byte %d; use A-Z a-z 0-9 . _ : @ -", i)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isNameByte(c byte) bool {
	return isAlphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
}

// CheckPrefix returns an ErrInvalid error unless prefix is empty or a valid lock name.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return CheckNameOf("prefix", prefix)
}

func checkLeaseID(id LeaseID) error {
	if id == (LeaseID{}) {
		return Invalid("lease_id", "is missing; send the UUID that acquire returned")
	}
	return nil
}

func checkToken(t Token) error {
	if t < 1 || t > MaxToken {
		return Invalid("fencing_token", "is %d; give 1 to %d", t, MaxToken)
	}
	return nil
}

func checkSlot(slot *int) error {
	if slot != nil && (*slot < 0 || *slot > MaxHolders) {
		return Invalid("slot", "is %d; give 0 to %d", *slot, MaxHolders)
	}
	return nil
}

// InWords returns a duration in its two greatest units, rounded down, such as 26 s or 19 min 58 s; below a second, in
// milliseconds. A negative one is zero.
func InWords(d time.Duration) string {
	switch s := int64(d / time.Second); {
	case d > 0 && s == 0:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case s < 60:
		return fmt.Sprintf("%d s", max(s, 0))
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
}

// CheckDuration returns an ErrInvalid error unless d is within the bounds.
func CheckDuration(field string, d, least, greatest time.Duration) error {
	if d >= least && d <= greatest {
		return nil
	}
	is := fmt.Sprintf("is %d", d.Milliseconds())
	switch { // the caller may have given a number that has no Duration, of which this is the nearest
	case d > math.MaxInt64-time.Millisecond:
		is = "is too large"
	case d < time.Millisecond-math.MaxInt64:
		is = "is too small"
	}
	return Invalid(field, "%s; give %d to %d (milliseconds)", is, least.Milliseconds(), greatest.Milliseconds())
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

// checkNumbers returns an ErrInvalid error if value, which is valid JSON, contains a number outside the range of a
// float64. JavaScript and others would read it as infinity.
func checkNumbers(field string, value json.RawMessage) error {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return Invalid(field, "contains a number beyond the range of a 64-bit float; use a smaller one or a string")
	}
	return nil
}

// Characters that display as blank although their Unicode category is a visible one.
const (
	brailleBlank = '\u2800'
	nullNotehead = '\U0001D159'
)

// checkText returns an ErrInvalid error unless text can be shown to people: valid UTF-8 of min to max characters,
// without control characters, line separators and bidirectional controls, and with at least one visible character.
// Joiners (as in emoji), inner spaces and right-to-left letters are allowed.
func checkText(field, text string, min, max int) error {
	if err := CheckCharacters(field, text, min, max); err != nil {
		return err
	}
	visible := false
	for _, r := range text {
		if r < utf8.RuneSelf { // fast path: every acquire is checked, and most texts are ASCII
			visible = visible || r != ' '
			continue
		}
		if unicode.In(r, unicode.Zl, unicode.Zp) {
			return Invalid(field, "has a line separator, %U; remove it", r)
		}
		if unicode.Is(unicode.Bidi_Control, r) {
			return Invalid(field, "has a character that changes the direction of text, %U; remove it", r)
		}
		visible = visible || !isInvisible(r)
	}
	if !visible {
		return Invalid(field, "has no visible character; add one")
	}
	return nil
}

// CheckCharacters returns an ErrInvalid error unless text is valid UTF-8 of min to max characters without control
// characters. Searches use it alone, so that they find texts that an older release stored and checkText refuses.
func CheckCharacters(field, text string, min, max int) error {
	if !utf8.ValidString(text) {
		return Invalid(field, "is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(text); n < min || n > max {
		return Invalid(field, "has %d characters; give %d to %d", n, min, max)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return Invalid(field, "has a control character; remove it")
		}
	}
	return nil
}

// isInvisible reports whether r shows nothing by itself: a space, or a character that Unicode calls default
// ignorable.
func isInvisible(r rune) bool {
	return r == brailleBlank || r == nullNotehead ||
		unicode.In(r, unicode.Z, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// checkMode returns an ErrInvalid error unless the mode, the capacity and the permits of m go together.
func checkMode(m Member) error {
	switch {
	case m.Mode.String() == "unknown":
		return Invalid("mode", "is invalid; use exclusive, shared or permit")
	case m.Mode != Permit && m.Capacity != 0:
		return Invalid("capacity", "is only valid with mode permit; leave it out")
	case m.Mode != Permit && m.Permits != 0:
		return Invalid("permits", "is only valid with mode permit; leave it out")
	case m.Mode == Permit && (m.Capacity < 0 || m.Capacity > MaxHolders):
		return Invalid("capacity", "is %d; give 1 to %d, the number of permits", m.Capacity, MaxHolders)
	}
	return checkPermits(m)
}

// checkPermits returns an ErrInvalid error if m asks for more permits than there are.
func checkPermits(m Member) error {
	capacity := cmp.Or(m.Capacity, MaxHolders) // zero: that of a rule
	if m.Permits < 0 || m.Permits > capacity && m.Mode == Permit {
		return Invalid("permits", "is %d; give 1 to %d, the capacity: the lock has no more permits", m.Permits, capacity)
	}
	return nil
}
