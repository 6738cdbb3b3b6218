package client

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

// appendItem writes a call as an item of a batch. It is one that lock.CheckItem lets
// through and that JSON can carry. Thousands a second are written, which is why it
// is done by hand.
func appendItem(b []byte, item lock.Command) []byte {
	switch c := item.(type) {
	case lock.Acquire:
		b = appendHead(b, "acquire", c.Name, c.LeaseID)
		b = appendText(append(b, `,"holder":`...), c.Holder)
		if c.Mode != 0 {
			b = appendText(append(b, `,"mode":`...), c.Mode.String())
		}
		if c.Capacity != 0 {
			b = strconv.AppendInt(append(b, `,"capacity":`...), int64(c.Capacity), 10)
		}
		b = appendMs(b, `,"ttl_ms":`, c.TTL)
		b = appendMs(b, `,"grace_ms":`, c.Grace)
		b = appendMs(b, `,"max_hold_ms":`, c.MaxHold)
		b = appendMetadata(b, c.Metadata)
	case lock.Renew:
		b = appendHead(b, "renew", c.Name, c.LeaseID)
		b = appendMs(b, `,"ttl_ms":`, c.TTL)
		b = appendMetadata(b, c.Metadata)
	case lock.Release:
		b = appendHead(b, "release", c.Name, c.LeaseID)
	}
	return append(b, '}')
}

func appendHead(b []byte, op, name string, id lock.LeaseID) []byte {
	b = append(append(b, `{"op":"`...), op...)
	b = append(append(b, `","name":"`...), name...) // of characters that need no escape
	b = appendID(append(b, `","lease_id":"`...), id)
	return append(b, '"')
}

// appendID writes the id as a UUID.
func appendID(b []byte, id lock.LeaseID) []byte {
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// appendText writes text, which is valid UTF-8, as a JSON string.
func appendText(b []byte, text string) []byte {
	b, err := jsontext.AppendQuote(b, text)
	if err != nil {
		panic(err) // of text that JSON cannot carry, and that was refused before
	}
	return b
}

func appendMs(b []byte, member string, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	return strconv.AppendInt(append(b, member...), wholeMs(d), 10)
}

// appendMetadata writes metadata, which is valid JSON, without white space.
func appendMetadata(b []byte, m json.RawMessage) []byte {
	if m == nil {
		return b
	}
	to := bytes.NewBuffer(append(b, `,"metadata":`...))
	if err := json.Compact(to, m); err != nil {
		panic(err) // of metadata that was refused before
	}
	return to.Bytes()
}
