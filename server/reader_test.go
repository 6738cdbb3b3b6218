package server

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// TestReaderKeepsNothing parses each body after each other one, with the same reader.
func TestReaderKeepsNothing(t *testing.T) {
	t.Parallel()
	bodies := []string{
		`{"holder":"worker-1","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","ttl_ms":30000,"metadata":{"a":{"b":[1]}}}`,
		`{"holder":"worker-2"}`,
		`{"\u0068older":"\u0041"}`,
		`{"holder":"worker-1","holder":"worker-1"}`,
		`{"holder":"worker-1","metadata":{"a":1,"a":2}}`,
		`{"holder":"worker-1","nobody":1}`,
		`{"holder":"worker-1","metadata":{"a":[[[`,
		`{}`, ``, `[]`, `{"holder":"worker-1"}{`,
	}
	for _, before := range bodies {
		for _, body := range bodies {
			used := new(reader)
			_, _ = parse[openapi.AcquireRequest](used, []byte(before))
			got, gotErr := parse[openapi.AcquireRequest](used, []byte(body))
			want, wantErr := parse[openapi.AcquireRequest](new(reader), []byte(body))
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
				t.Errorf("%s after %s: %v, %v; want %v, %v", body, before, got, gotErr, want, wantErr)
			}
		}
	}
}

// TestParsedBodyDoesNotAliasTheReader overwrites a body after parsing it.
func TestParsedBodyDoesNotAliasTheReader(t *testing.T) {
	t.Parallel()
	const text = `{"holder":"worker-1","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","mode":"shared","metadata":{"a":"b"}}`
	body, used := []byte(text), new(reader)
	got, err := parse[openapi.AcquireRequest](used, body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	want, err := parse[openapi.AcquireRequest](new(reader), []byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v became %v: %v", want, got, err)
	}
}
