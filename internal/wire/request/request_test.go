package request

import (
	"bytes"
	"reflect"
	"testing"
)

// TestDecoderCanBeReused decodes each body after each other body.
func TestDecoderCanBeReused(t *testing.T) {
	t.Parallel()
	bodies := []string{
		`{"holder":"worker-1","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","ttl_ms":30000,"metadata":{"a":{"b":[1]}}}`,
		`{"holder":"worker-2"}`,
		`{"\u0068older":"\u0041"}`,
		`{"holder":"worker-1","holder":"worker-1"}`,
		`{"holder":"worker-1","metadata":{"a":1,"a":2}}`,
		`{"holder":"worker-1","nobody":1}`,
		`{"holder":"worker-1","metadata":{"a":[[[`,
		`{"holder":"worker-1","locks":[{"name":"a"},{"name":"b","mode":"shared"}]}`, `{"holder":"worker-1","locks":[{"name":"a"},{}]}`,
		`{}`, ``, `[]`, `{"holder":"worker-1"}{`,
	}
	for _, before := range bodies {
		for _, body := range bodies {
			used := new(Decoder)
			_, _ = used.Acquire("a", []byte(before))
			got, gotErr := used.Acquire("a", []byte(body))
			want, wantErr := new(Decoder).Acquire("a", []byte(body))
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
				t.Errorf("%s after %s: %v, %v; want %v, %v", body, before, got, gotErr, want, wantErr)
			}
			got, gotErr = used.AcquireSet("", []byte(body))
			want, wantErr = new(Decoder).AcquireSet("", []byte(body))
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErr, wantErr) {
				t.Errorf("%s after %s, as a set: %v, %v; want %v, %v", body, before, got, gotErr, want, wantErr)
			}
		}
	}
}

// TestCommandSharesNoMemoryWithTheBody overwrites a body that was decoded.
func TestCommandSharesNoMemoryWithTheBody(t *testing.T) {
	t.Parallel()
	const text = `{"holder":"worker-1","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","mode":"shared","metadata":{"a":"b"}}`
	body, used := []byte(text), new(Decoder)
	got, err := used.Acquire("a", body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	want, err := new(Decoder).Acquire("a", []byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v became %v: %v", want, got, err)
	}
}
