package row

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

const (
	// EventsPerBatch is how many event ids a row of events has. An event's id is that of its row times EventsPerBatch
	// plus its number.
	EventsPerBatch = epoch.EventsPerBatch
	// TokensPerBatch is how many tokens a row of events has.
	TokensPerBatch = epoch.TokensPerBatch
)

// stored returns the token as it is stored while the id of the row of events is not known. The tokens that the row
// grants are negative: n less TokensPerBatch for the n-th one, which [granted] and sql/swap.sql make tokens of. first
// is the number of the first one of the decision.
func stored(t lock.Token, first int) int64 {
	if t.IsProvisional() {
		return int64(t.Known(lock.Token(first))) - TokensPerBatch
	}
	return int64(t)
}

// granted returns the token of an event in the row.
func granted(stored, batch int64) lock.Token {
	if stored < 0 {
		return epoch.FirstToken(batch+1) + lock.Token(stored)
	}
	return lock.Token(stored)
}

// RefInterval is how many revisions of a lock there are, or a few more, between the events in paddock.event_refs.
const RefInterval = 16

// NameKey returns the key of paddock.event_refs for events of the lock: 63 bits of the SHA-256 of its name.
func NameKey(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// eventFields is the number of fields that every event has in an entry.
const eventFields = 10

// appendEntry appends the events of one lock to b, as an element of the column entries:
//
//	["name", previous, [number, slot, revision, kind, mode, "holder", token, place, "reason", delay, rest...], ...]
//
// rest are the fields of appendRest, as far as the event has any. token is as [stored]; firstToken is the number of the
// first token of the decision.
//
// previous is the row with the lock's event before these, zero if none is known. The first event has the number first.
// delay is by how many microseconds the event is later than the row's instant at.
func appendEntry(b []byte, name string, previous int64, first, firstToken int, events []lock.Event, at time.Time) []byte {
	b = append(b, '[')
	b = appendText(b, name)
	b = append(b, ',')
	b = strconv.AppendInt(b, previous, 10)
	for i := range events {
		e := &events[i]
		b = append(b, ",["...)
		for _, n := range [...]int64{int64(first + i), int64(e.Slot), e.Revision, int64(e.Kind), int64(e.Mode)} {
			b = append(strconv.AppendInt(b, n, 10), ',')
		}
		b = append(appendText(b, e.Holder), ',')
		b = append(strconv.AppendInt(b, stored(e.Token, firstToken), 10), ',')
		b = append(strconv.AppendInt(b, e.Place, 10), ',')
		b = append(appendText(b, e.Reason), ',')
		b = strconv.AppendInt(b, e.At.Sub(at).Microseconds(), 10)
		b = append(appendRest(b, e, firstToken), ']')
	}
	return append(b, ']')
}

// appendRest appends the fields that not all events have, up to the last one that e has:
//
//	"name of the key", "id of the key", session, "set", "trace",
//	newest, late, "held by", cycle, "slots", until
//
// The first ones are what an event of a caller has, in a session or in a set. The next three are those of a refused event:
// newest is as [stored], and late in microseconds. cycle is the text of the lock.Cycle, and until in microseconds since
// 1970. What an event does not have before its last one is empty, zero or null.
func appendRest(b []byte, e *lock.Event, firstToken int) []byte {
	for i := range restFields(e) {
		b = append(b, ',')
		switch i {
		case 0:
			b = appendText(b, e.Caller.Name)
		case 1:
			b = appendText(b, e.Caller.KeyID)
		case 2:
			b = strconv.AppendInt(b, int64(e.Session), 10)
		case 3:
			b = appendText(b, strings.Join(e.Set, " "))
		case 4:
			b = appendText(b, e.Caller.Trace)
		case 5:
			b = strconv.AppendInt(b, stored(e.Newest, firstToken), 10)
		case 6:
			b = strconv.AppendInt(b, e.Late.Microseconds(), 10)
		case 7:
			b = appendText(b, e.HeldBy)
		case 8:
			b = append(b, cmp.Or(e.Cycle, "null")...)
		case 9:
			b = appendText(b, string(e.Slots))
		case 10:
			b = strconv.AppendInt(b, micros(e.Until), 10)
		}
	}
	return b
}

// restFields returns how many fields of appendRest the event has.
func restFields(e *lock.Event) int {
	switch {
	case !e.Until.IsZero():
		return 11
	case e.Slots != "":
		return 10
	case e.Cycle != "":
		return 9
	case e.Kind == lock.Refused:
		return 8
	case e.Caller.Trace != "":
		return 5
	case e.Set != nil:
		return 4
	case e.Session != 0:
		return 3
	case e.Caller != lock.Caller{}:
		return 2
	}
	return 0
}

// appendText appends s as a JSON string. Names and most holders need no escapes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return append(b, mustJSON(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// An Entry is the events of one lock in one row of paddock.event_batches.
type Entry struct {
	Name     string
	Previous int64 // the row with the event before these; zero: none is known
	Events   []lock.Event
}

// ParseEntry returns the events of an element of the column entries. batch and at are the id and the instant of its
// row.
func ParseEntry(element []byte, batch int64, at time.Time) (Entry, error) {
	most := max(bytes.Count(element, []byte("["))-1, 0) // of events; a holder may contain such a character
	e := Entry{Events: make([]lock.Event, most)}
	delays, late, untils := make([]int64, most), make([]int64, most), make([]int64, most)
	cycles, sets := make([]json.RawMessage, most), make([]string, most)
	fields := []any{&e.Name, &e.Previous}
	for i := range e.Events {
		v := &e.Events[i]
		fields = append(fields, &[]any{
			&v.ID, &v.Slot, &v.Revision, &v.Kind, &v.Mode, &v.Holder, &v.Token, &v.Place, &v.Reason, &delays[i],
			&v.Caller.Name, &v.Caller.KeyID, &v.Session, &sets[i], &v.Caller.Trace,
			&v.Newest, &late[i], &v.HeldBy, &cycles[i], &v.Slots, &untils[i],
		})
	}
	if err := json.Unmarshal(element, &fields); err != nil {
		return Entry{}, badEntry(e.Name, batch, err)
	}
	if len(fields) < 2 {
		return Entry{}, badEntry(e.Name, batch, errFields)
	}
	for i, event := range fields[2:] {
		if values, ok := event.(*[]any); !ok || len(*values) < eventFields {
			return Entry{}, badEntry(e.Name, batch, errFields)
		}
		v := &e.Events[i]
		if v.Until = fromMicros(untils[i]); sets[i] != "" {
			v.Set = strings.Split(sets[i], " ")
		}
		v.Late, v.Cycle = time.Duration(late[i])*time.Microsecond, lock.Cycle(cycles[i])
		v.Token, v.Newest = granted(int64(v.Token), batch), granted(int64(v.Newest), batch)
		v.ID, v.Name, v.At = batch*EventsPerBatch+v.ID, e.Name, at.Add(time.Duration(delays[i])*time.Microsecond).UTC()
	}
	e.Events = e.Events[:len(fields)-2]
	return e, nil
}

var errFields = errors.New("it has too few fields")

func badEntry(name string, batch int64, err error) error {
	return &database.MalformedError{
		Name: name, Table: "event_batches", Key: fmt.Sprintf("id = %d", batch), Cause: fmt.Errorf("an entry is not one of events: %w", err),
	}
}
