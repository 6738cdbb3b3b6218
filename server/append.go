package server

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// usualLease is room for a lease without its metadata, in bytes.
const usualLease = 512

// appendLease appends the lease as encoding/json would, in a fraction of the time. A
// test compares the two.
func appendLease(b []byte, l openapi.Lease) []byte {
	b = append(b, `{"name":`...)
	b = appendText(b, l.Name)
	b = appendID(append(b, `,"lease_id":`...), l.LeaseID)
	b = strconv.AppendInt(append(b, `,"fencing_token":`...), l.FencingToken, 10)
	b = strconv.AppendInt(append(b, `,"slot":`...), int64(l.Slot), 10)
	b = appendText(append(b, `,"mode":`...), string(l.Mode))
	b = appendText(append(b, `,"holder":`...), l.Holder)
	b = strconv.AppendInt(append(b, `,"ttl_ms":`...), l.TTLMs, 10)
	b = strconv.AppendInt(append(b, `,"grace_ms":`...), l.GraceMs, 10)
	if l.MaxHoldMs != nil {
		b = strconv.AppendInt(append(b, `,"max_hold_ms":`...), *l.MaxHoldMs, 10)
	}
	b = appendTime(append(b, `,"acquired_at":`...), l.AcquiredAt)
	b = appendTime(append(b, `,"expires_at":`...), l.ExpiresAt)
	b = strconv.AppendInt(append(b, `,"expires_in_ms":`...), l.ExpiresInMs, 10)
	if l.Metadata != nil {
		b = appendJSON(append(b, `,"metadata":`...), jsontext.Value(l.Metadata))
	}
	return append(b, '}')
}

// appendText appends a JSON string. Bytes that are not UTF-8 are replaced.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

func appendID(b []byte, id uuid.UUID) []byte {
	b = append(b, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
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

// appendJSON appends what is JSON already, without its white space.
func appendJSON(b []byte, text jsontext.Value) []byte {
	b, err := jsontext.AppendFormat(b, text, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		panic(err) // it came out of the database as JSON: recovered makes it a problem
	}
	return b
}
