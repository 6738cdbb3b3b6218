package row

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// eventFields is the number of fields of an event in an entry.
const eventFields = 10

// appendEntry appends the events of one lock to b, as an element of the column entries:
//
//	["name", previous, [number, slot, revision, kind, mode, "holder", token, place, "reason", delay], ...]
//
// previous is the row with the lock's event before these, zero if none is known. The first event has the number first.
// delay is by how many microseconds the event is later than the row's instant at.
func appendEntry(b []byte, name string, previous int64, first int, events []lock.Event, at time.Time) []byte {
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
		b = append(strconv.AppendInt(b, int64(e.Token), 10), ',')
		b = append(strconv.AppendInt(b, e.Place, 10), ',')
		b = append(appendText(b, e.Reason), ',')
		b = strconv.AppendInt(b, e.At.Sub(at).Microseconds(), 10)
		b = append(b, ']')
	}
	return append(b, ']')
}

// appendText appends s as a JSON string. Names and most holders need no escapes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			text, err := json.Marshal(s)
			if err != nil {
				panic(fmt.Sprintf("row: a string as JSON: %v", err)) // json.Marshal fails for no string
			}
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// An Entry is the events of one lock in one row of paddock.event_batches.
type Entry struct {
	Name     string
	Previous int64 // the row with the event before these; zero: none is known
	Events   []lock.Event
}

// ParseEntry returns the events of an element of the column entries. batch and at are the id and the instant of its row.
func ParseEntry(element []byte, batch int64, at time.Time) (Entry, error) {
	var fields []json.RawMessage
	if err := json.Unmarshal(element, &fields); err != nil || len(fields) < 2 {
		return Entry{}, badEntry(batch, err)
	}
	var e Entry
	if err := unmarshal(fields[:2], &e.Name, &e.Previous); err != nil {
		return Entry{}, badEntry(batch, err)
	}
	for _, field := range fields[2:] {
		var values []json.RawMessage
		if err := json.Unmarshal(field, &values); err != nil || len(values) < eventFields {
			return Entry{}, badEntry(batch, err)
		}
		event := lock.Event{Name: e.Name}
		var number, delay int64
		err := unmarshal(values, &number, &event.Slot, &event.Revision, &event.Kind, &event.Mode, &event.Holder,
			&event.Token, &event.Place, &event.Reason, &delay)
		if err != nil {
			return Entry{}, badEntry(batch, err)
		}
		event.ID, event.At = batch*EventsPerBatch+number, at.Add(time.Duration(delay)*time.Microsecond).UTC()
		e.Events = append(e.Events, event)
	}
	return e, nil
}

func unmarshal(fields []json.RawMessage, targets ...any) error {
	for i, target := range targets {
		if err := json.Unmarshal(fields[i], target); err != nil {
			return err
		}
	}
	return nil
}

func badEntry(batch int64, err error) error {
	return fmt.Errorf("%w: row %d of paddock.event_batches has an entry that is not one of events: %w", database.ErrMalformed, batch, err)
}
