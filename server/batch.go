package server

import (
	"bytes"
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// Batch executes the items of a batch.
func (a *api) Batch(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		release, err := a.reserveBatch(r)
		if err != nil {
			return reply{}, err
		}
		defer release()
		body, err := readBody(new(bytes.Buffer), w, r, MaxBatchBodySize)
		if err != nil {
			return reply{}, err
		}
		b := batch{request: r}
		if b.items, b.results, err = new(wire.Decoder).Batch(body); err != nil {
			return reply{}, err
		}
		b.execute(ctx, a.locks)
		a.logRefused(b)
		return ok(b), nil
	})
}

// reserveBatch takes a slot for a large body, which release gives back. Without a free slot the request is refused. A
// body that is no longer than that of a single call needs no slot.
func (s *Server) reserveBatch(r *http.Request) (release func(), err error) {
	if 0 <= r.ContentLength && r.ContentLength <= MaxBodySize {
		return func() {}, nil
	}
	select {
	case s.batchSlots <- struct{}{}:
		return func() { <-s.batchSlots }, nil
	default:
		return nil, &lock.Error{Code: lock.ErrUnavailable,
			Detail: "Too many large batches are being processed. Nothing was changed; retry this batch, or send smaller ones."}
	}
}

// A batch is the items of one request and their results.
type batch struct {
	request *http.Request
	items   []lock.Command // not valid where the result has an error from decoding
	results []lock.Result
}

// execute calls the Service with the items that were decoded.
func (b batch) execute(ctx context.Context, locks lock.Service) {
	valid, places := make([]lock.Command, 0, len(b.items)), make([]int, 0, len(b.items))
	for i, item := range b.items {
		if b.results[i].Err == nil {
			valid, places = append(valid, item), append(places, i)
		}
	}
	for i, result := range locks.Batch(ctx, valid) {
		b.results[places[i]] = result
	}
}

// logRefused logs the first refusal with each code. The others mostly have the same reason, and there may be a thousand.
func (s *Server) logRefused(b batch) {
	seen := make(map[lock.Code]bool)
	for _, result := range b.results {
		if result.Err == nil {
			continue
		}
		if e := refusalOf(result.Err); !seen[e.Code] {
			seen[e.Code] = true
			s.logRefusal(b.request, e, result.Err)
		}
	}
}

// encode returns the response. What is left of each lease is counted as the lease is written.
func (b batch) encode() []byte {
	var lease wire.Lease
	return append(wire.AppendResults(nil, len(b.results), func(i int) wire.BatchResult {
		result := b.results[i]
		if result.Err != nil {
			p := problemTo(b.request, refusalOf(result.Err), result.Err)
			return wire.BatchResult{Status: p.Status, Problem: &p}
		}
		status := http.StatusOK
		switch b.items[i].(type) {
		case lock.Acquire:
			status = grantStatus(result.Grant)
		case lock.Release:
			return wire.BatchResult{Status: http.StatusNoContent}
		}
		lease = wire.LeaseOf(result.Grant)
		return wire.BatchResult{Status: status, Lease: &lease}
	}), '\n')
}
