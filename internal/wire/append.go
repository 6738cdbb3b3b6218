package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

const (
	leaseSize  = 512 // estimated size of a lease without metadata, in bytes
	resultSize = 320 // estimated size of a result of a batch
)

// Encode returns a model as one line of JSON. It does not escape characters such as <. It fails only for a time after
// the year 9999.
func Encode(v any) ([]byte, error) {
	if l, is := v.(api.Lease); is {
		return append(AppendLease(make([]byte, 0, leaseSize+len(l.Metadata)), l), '\n'), nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return text.Bytes(), err
}

// AppendLease appends the lease as encoding/json would, but faster.
func AppendLease(b []byte, l api.Lease) []byte {
	b = appendText(append(b, `{"name":`...), l.Name)
	b = appendID(append(b, `,"lease_id":`...), l.LeaseID)
	b = strconv.AppendInt(append(b, `,"fencing_token":`...), l.FencingToken, 10)
	b = strconv.AppendInt(append(b, `,"slot":`...), int64(l.Slot), 10)
	if len(l.Slots) > 0 {
		b = appendAny(append(b, `,"slots":`...), l.Slots)
	}
	b = appendText(append(b, `,"mode":`...), string(l.Mode))
	b = appendText(append(b, `,"holder":`...), l.Holder)
	b = strconv.AppendInt(append(b, `,"ttl_ms":`...), l.TTLMs, 10)
	b = strconv.AppendInt(append(b, `,"grace_ms":`...), l.GraceMs, 10)
	if l.MaxHoldMs != nil {
		b = strconv.AppendInt(append(b, `,"max_hold_ms":`...), *l.MaxHoldMs, 10)
	}
	if l.OnExpiry != nil {
		b = appendText(append(b, `,"on_expiry":`...), string(*l.OnExpiry))
	}
	b = appendTime(append(b, `,"acquired_at":`...), l.AcquiredAt)
	b = appendTime(append(b, `,"expires_at":`...), l.ExpiresAt)
	b = strconv.AppendInt(append(b, `,"expires_in_ms":`...), l.ExpiresInMs, 10)
	if l.Session != nil {
		b = appendText(append(b, `,"session":`...), *l.Session)
	}
	return append(appendMetadata(b, l.Metadata), '}')
}

// AppendResults appends a BatchResults with result(0) to result(n-1).
func AppendResults(b []byte, n int, result func(i int) api.BatchResult) []byte {
	b = append(slices.Grow(b, n*resultSize), `{"results":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResult(b, result(i))
	}
	return append(b, `]}`...)
}

func appendResult(b []byte, r api.BatchResult) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(r.Status), 10)
	if r.Lease != nil {
		b = AppendLease(append(b, `,"lease":`...), *r.Lease)
	}
	if r.Problem != nil {
		b = appendAny(append(b, `,"problem":`...), *r.Problem)
	}
	return append(b, '}')
}

// AppendItem appends a command that paddock.ValidateBatchItem accepts as an item of a batch. Its name must be valid, its
// text UTF-8 and its metadata JSON.
func AppendItem(b []byte, c lock.Command) []byte {
	op := string(api.Release)
	switch c.(type) {
	case lock.Acquire:
		op = string(api.Acquire)
	case lock.Renew:
		op = string(api.Renew)
	}
	b = append(append(b, `{"op":"`...), op...)
	b = append(append(b, `","name":"`...), c.Names()[0]...) // of characters that need no escape
	return appendMembers(append(b, `",`...), c)
}

// AppendRequest appends an acquire, a renewal or a release as the body of a call of its own.
// Its text must be UTF-8 and its metadata JSON.
func AppendRequest(b []byte, c lock.Command) []byte { return appendMembers(append(b, '{'), c) }

// appendMembers appends the members that a single call and an item have in common, and the closing brace. It omits
// zero values.
func appendMembers(b []byte, c lock.Command) []byte {
	b = append(b, `"lease_id":`...)
	switch c := c.(type) {
	case lock.Acquire:
		b = appendID(b, c.LeaseID)
		one := lock.Member{} // in the form of one lock
		if len(c.Locks) == 1 {
			one = c.Locks[0]
		}
		if one.Capacity != 0 {
			b = strconv.AppendInt(append(b, `,"capacity":`...), int64(one.Capacity), 10)
		}
		b = appendMs(b, `,"grace_ms":`, c.Grace)
		b = appendText(append(b, `,"holder":`...), c.Holder)
		if c.KeepPlace {
			b = append(b, `,"keep_place":true`...)
		}
		if len(c.Locks) > 1 {
			b = appendLocks(b, c.Locks)
		}
		b = appendMetadata(appendMs(b, `,"max_hold_ms":`, c.MaxHold), c.Metadata)
		if one.Mode != 0 {
			b = appendText(append(b, `,"mode":`...), one.Mode.String())
		}
		if c.Stays {
			b = append(b, `,"on_expiry":"hold"`...)
		}
		if one.Permits != 0 {
			b = strconv.AppendInt(append(b, `,"permits":`...), int64(one.Permits), 10)
		}
		if c.Once {
			b = append(b, `,"once":true`...)
		}
		if c.SessionID != (lock.SessionID{}) {
			b = appendID(append(b, `,"session_id":`...), c.SessionID)
		}
		if c.Task != "" {
			b = appendText(append(b, `,"task_id":`...), string(c.Task))
		}
		b = appendMs(appendMs(b, `,"ttl_ms":`, c.TTL), `,"wait_ms":`, c.Wait)
	case lock.Renew:
		b = appendNames(appendMetadata(appendID(b, c.LeaseID), c.Metadata), c.Locks)
		b = appendMs(b, `,"ttl_ms":`, c.TTL)
	case lock.Release:
		b = appendClosing(appendNames(appendID(b, c.LeaseID), c.Locks), c.Closed)
	}
	return append(b, '}')
}

func appendClosing(b []byte, c lock.Closing) []byte {
	b = appendMs(b, `,"closed_ms":`, c.For)
	if c.Period != "" {
		b = appendText(append(b, `,"once_per":`...), string(c.Period))
	}
	if c.Zone != "" {
		b = appendText(append(b, `,"time_zone":`...), c.Zone)
	}
	return b
}

func appendMs(b []byte, member string, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	return strconv.AppendInt(append(b, member...), Milliseconds(d), 10)
}

// Milliseconds returns d in whole milliseconds for a request. It rounds towards zero, but a d other than zero is at
// least 1, or at most -1: in a request, zero has another meaning.
func Milliseconds(d time.Duration) int64 {
	switch ms := d.Milliseconds(); {
	case d > 0:
		return max(ms, 1)
	case d < 0:
		return min(ms, -1)
	}
	return 0
}

// appendText appends a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendAny(b, text)
		}
	}
	return append(append(append(b, '"'), text...), '"') // as it is, which is faster
}

// appendAny appends v as Encode returns it, without the end of the line. It panics for a time after the year 9999,
// which the database does not have.
func appendAny(b []byte, v any) []byte {
	text, err := Encode(v)
	if err != nil {
		panic(err)
	}
	return append(b, bytes.TrimSuffix(text, []byte("\n"))...)
}

func appendID(b []byte, id [16]byte) []byte {
	b = append(b, '"')
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return append(b, '"')
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendMetadata appends metadata in compact form, unless it is nil. It panics if the metadata is not JSON: the
// database returns only JSON, and the client checks its input.
func appendMetadata(b []byte, m json.RawMessage) []byte {
	if m == nil {
		return b
	}
	text := bytes.NewBuffer(append(b, `,"metadata":`...))
	if err := json.Compact(text, m); err != nil {
		panic(err)
	}
	return text.Bytes()
}
