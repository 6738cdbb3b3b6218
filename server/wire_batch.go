package server

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// usualResult is about the size of a result, in bytes.
const usualResult = 320

// kinds are what items can be, by their op. A test compares their members with those
// of openapi.yaml.
var kinds = map[openapi.BatchAcquireOp]kind{
	"acquire": {
		may:  setOf("op", "name", "lease_id", "holder", "mode", "capacity", "ttl_ms", "grace_ms", "max_hold_ms", "metadata"),
		must: setOf("op", "name", "holder"), command: acquireItem,
	},
	"renew":   {may: setOf("op", "name", "lease_id", "ttl_ms", "metadata"), must: setOf("op", "name", "lease_id"), command: renewItem},
	"release": {may: setOf("op", "name", "lease_id"), must: setOf("op", "name", "lease_id"), command: releaseItem},
}

func acquireItem(in openapi.BatchAcquire) (lock.Command, error) {
	return acquireFrom(in.Name, openapi.AcquireRequest{
		LeaseID: in.LeaseID, Holder: in.Holder, Mode: in.Mode, Capacity: in.Capacity,
		TTLMs: in.TTLMs, GraceMs: in.GraceMs, MaxHoldMs: in.MaxHoldMs, Metadata: in.Metadata,
	})
}

func renewItem(in openapi.BatchAcquire) (lock.Command, error) {
	return renewFrom(in.Name, openapi.RenewRequest{LeaseID: *in.LeaseID, TTLMs: in.TTLMs, Metadata: in.Metadata})
}

func releaseItem(in openapi.BatchAcquire) (lock.Command, error) {
	return releaseFrom(in.Name, openapi.ReleaseRequest{LeaseID: *in.LeaseID})
}

// A told is what callers are told of a batch: an openapi.BatchResults, with what is left
// of each lease as it is written.
type told struct {
	batch
	request *http.Request
}

func (t told) appendJSON(b []byte) []byte {
	b = slices.Grow(b, len(t.results)*usualResult)
	b = append(b, `{"results":[`...)
	for i, result := range t.results {
		if i > 0 {
			b = append(b, ',')
		}
		b = t.appendResult(b, t.items[i], result)
	}
	return append(b, `]}`...)
}

// appendResult appends what the item's call would have been answered with.
func (t told) appendResult(b []byte, item lock.Command, result lock.Result) []byte {
	if result.Err != nil {
		p := problemTo(t.request, refusalOf(result.Err), result.Err)
		b = append(appendStatus(b, p.Status), `,"problem":`...)
		return append(append(b, bytes.TrimSpace(encoded(p))...), '}')
	}
	alone := noContent()
	switch item.(type) {
	case lock.Acquire:
		alone = granted(result.Grant)
	case lock.Renew:
		alone = ok(leaseOf(result.Grant))
	}
	b = appendStatus(b, alone.status)
	if lease, has := alone.body.(openapi.Lease); has {
		b = appendLease(append(b, `,"lease":`...), lease)
	}
	return append(b, '}')
}

func appendStatus(b []byte, status int) []byte {
	return strconv.AppendInt(append(b, `{"status":`...), int64(status), 10)
}
