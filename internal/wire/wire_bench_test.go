package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// commonLease is the lease of most answers: without metadata and maximum hold.
const commonLease = `{"name":"jobs:nightly","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":41,"slot":0,` +
	`"mode":"exclusive","holder":"worker-1","ttl_ms":30000,"grace_ms":0,"acquired_at":"2026-01-02T03:04:05.678901Z",` +
	`"expires_at":"2026-01-02T03:04:35.678901Z","expires_in_ms":29999}`

var commonAcquire = lock.Acquire{Name: "jobs:nightly", LeaseID: someID, Holder: "worker-1", TTL: time.Minute}

func BenchmarkParseLease(b *testing.B) {
	b.ReportAllocs()
	text, sent := []byte(commonLease+"\n"), time.Now()
	for b.Loop() {
		if _, err := ParseLease(text, commonAcquire, sent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse100Results(b *testing.B) {
	b.ReportAllocs()
	results, items := make([][]byte, 100), make([]lock.Command, 100)
	for i := range results {
		results[i], items[i] = []byte(`{"status":201,"lease":`+commonLease+`}`), commonAcquire
	}
	text, sent := []byte(`{"results":[`+string(bytes.Join(results, []byte(",")))+`]}`), time.Now()
	for b.Loop() {
		if _, err := ParseResults(text, items, sent, refusedItem); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendLease(b *testing.B) {
	for name, metadata := range map[string]string{"plain": "", "metadata": `{"host": "db-3", "pid": 4711, "note": "<é> \"x\""}`} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var l api.Lease
			if err := json.Unmarshal([]byte(commonLease), &l); err != nil {
				b.Fatal(err)
			}
			if metadata != "" {
				l.Metadata = json.RawMessage(metadata)
			}
			text := make([]byte, 0, leaseSize)
			for b.Loop() {
				text = AppendLease(text[:0], l)
			}
		})
	}
}

func BenchmarkAppendItem(b *testing.B) {
	b.ReportAllocs()
	text := make([]byte, 0, leaseSize)
	for b.Loop() {
		text = AppendItem(text[:0], commonAcquire)
	}
}
