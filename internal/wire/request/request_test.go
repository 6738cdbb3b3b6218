package request

import (
	"bytes"
	"reflect"
	"testing"
)

// TestCommandSharesNoMemoryWithTheBody overwrites a body that was decoded.
func TestCommandSharesNoMemoryWithTheBody(t *testing.T) {
	t.Parallel()
	const text = `{"holder":"worker-1","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","mode":"shared","metadata":{"a":"b"}}`
	body := []byte(text)
	got, err := Read[Acquire]("a", body)
	if err != nil {
		t.Fatal(err)
	}
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	want, err := Read[Acquire]("a", []byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v became %v: %v", want, got, err)
	}
}
