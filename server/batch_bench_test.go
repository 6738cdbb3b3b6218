package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// granting is a Service that grants every item at once.
type granting struct{ lock.Service }

func (granting) Batch(_ context.Context, items []lock.Command) []lock.Result {
	results := make([]lock.Result, len(items))
	now := time.Now()
	for i, item := range items {
		switch c := item.(type) {
		case lock.Acquire:
			results[i].Grant = lock.Grant{Until: now.Add(c.TTL), Lease: lock.Lease{
				ID: c.LeaseID, Name: c.Name, Mode: lock.Exclusive, Holder: c.Holder, Token: 41, TTL: 30 * time.Second,
				AcquiredAt: now, ExpiresAt: now.Add(30 * time.Second), Metadata: c.Metadata,
			}}
		case lock.Renew:
			results[i].Grant = lock.Grant{Until: now.Add(c.TTL), Lease: lock.Lease{
				ID: c.LeaseID, Name: c.Name, Mode: lock.Exclusive, Holder: "worker", Token: 41, TTL: 30 * time.Second,
				AcquiredAt: now, ExpiresAt: now.Add(30 * time.Second),
			}}
		}
	}
	return results
}

// batchOf returns the body of a batch of n items of that kind.
func batchOf(n int, item func(name, id string) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(fmt.Sprintf("bench:%d", i), uuid.NewString())
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

// BenchmarkBatch measures a request of 100 items without the connection and the Service. An operation is a request.
func BenchmarkBatch(b *testing.B) {
	for kind, item := range map[string]func(name, id string) string{
		"acquire": func(name, id string) string {
			return fmt.Sprintf(`{"op":"acquire","name":"%s","lease_id":"%s","holder":"worker-1","ttl_ms":30000}`, name, id)
		},
		"renew": func(name, id string) string {
			return fmt.Sprintf(`{"op":"renew","name":"%s","lease_id":"%s"}`, name, id)
		},
		"release": func(name, id string) string {
			return fmt.Sprintf(`{"op":"release","name":"%s","lease_id":"%s"}`, name, id)
		},
	} {
		b.Run(kind, func(b *testing.B) {
			s := New(Options{Locks: granting{}})
			body := batchOf(100, item)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/batch", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
