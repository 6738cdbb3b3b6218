package server

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// A field is a member that items of a batch have, and how to read it. That is written
// out: reflection takes several times as long, and a batch has a thousand of them.
type field struct {
	name string
	kind reflect.Type
	// set gives the item the value, and returns false if that is not of the kind.
	set func(*openapi.BatchAcquire, jsontext.Value) bool
}

var fields = []field{
	textField("op", func(in *openapi.BatchAcquire, text string) { in.Op = openapi.BatchAcquireOp(text) }),
	textField("name", func(in *openapi.BatchAcquire, text string) { in.Name = text }),
	{"lease_id", reflect.TypeFor[uuid.UUID](), func(in *openapi.BatchAcquire, v jsontext.Value) bool {
		id, err := uuidOf(v)
		in.LeaseID = &id
		return err == nil
	}},
	textField("holder", func(in *openapi.BatchAcquire, text string) { in.Holder = text }),
	textField("mode", func(in *openapi.BatchAcquire, text string) { in.Mode = new(openapi.Mode(text)) }),
	numberField("capacity", func(in *openapi.BatchAcquire, n int) { in.Capacity = &n }),
	numberField("ttl_ms", func(in *openapi.BatchAcquire, ms int64) { in.TTLMs = &ms }),
	numberField("grace_ms", func(in *openapi.BatchAcquire, ms int64) { in.GraceMs = &ms }),
	numberField("max_hold_ms", func(in *openapi.BatchAcquire, ms int64) { in.MaxHoldMs = &ms }),
	{"metadata", reflect.TypeFor[json.RawMessage](), func(in *openapi.BatchAcquire, v jsontext.Value) bool {
		in.Metadata = json.RawMessage(v.Clone())
		return true
	}},
}

func textField(name string, set func(*openapi.BatchAcquire, string)) field {
	return field{name, reflect.TypeFor[string](), func(in *openapi.BatchAcquire, v jsontext.Value) bool {
		text, err := unquoted(v)
		set(in, text)
		return err == nil
	}}
}

// numberField is a whole number: digits, without fraction or exponent.
func numberField[T int | int64](name string, set func(*openapi.BatchAcquire, T)) field {
	kind := reflect.TypeFor[T]()
	return field{name, kind, func(in *openapi.BatchAcquire, v jsontext.Value) bool {
		n, err := strconv.ParseInt(string(v), 10, kind.Bits())
		set(in, T(n))
		return v.Kind() == '0' && err == nil
	}}
}

// nameOf returns the name of a member, which is copied only if it is no field's.
func nameOf(v jsontext.Value) string {
	for place := range fields {
		if name := fields[place].name; name == string(v[1:len(v)-1]) {
			return name
		}
	}
	name, _ := unquoted(v) // it was read as a name, so it is a string
	return name
}

// placeOf returns the place of the field of that name, negative if there is none.
func placeOf(name string) int {
	for place := range fields {
		if fields[place].name == name {
			return place
		}
	}
	return -1
}

// A fieldSet is some of the fields, a bit each.
type fieldSet uint

func setOf(names ...string) (s fieldSet) {
	for _, name := range names {
		s |= 1 << placeOf(name)
	}
	return s
}

func (s fieldSet) has(place int) bool { return s&(1<<place) != 0 }

func (s fieldSet) names() (names []string) {
	for place := range fields {
		if s.has(place) {
			names = append(names, fields[place].name)
		}
	}
	return names
}
