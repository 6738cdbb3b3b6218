package server

import (
	"bytes"
	"context"
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// Batch does many calls.
func (a *api) Batch(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		leave, err := a.takeRoom(r)
		if err != nil {
			return reply{}, err
		}
		defer leave()
		b, err := readBatch(w, r)
		if err != nil {
			return reply{}, err
		}
		b.do(ctx, a.locks)
		a.logRefused(r, b)
		return ok(told{b, r}), nil
	})
}

// takeRoom takes room in memory for the request's body, to be given back by leave, or
// refuses it. What is no longer than the body of a single call may be needs none.
func (s *Server) takeRoom(r *http.Request) (leave func(), err error) {
	if 0 <= r.ContentLength && r.ContentLength <= MaxBodySize {
		return func() {}, nil
	}
	select {
	case s.room <- struct{}{}:
		return func() { <-s.room }, nil
	default:
		return nil, &lock.Error{Code: lock.ErrUnavailable,
			Detail: "As many large batches are in work here as may be. Nothing was changed; send this one again, or in smaller ones."}
	}
}

// A batch is what one request asks for, and what came of it.
type batch struct {
	items   []lock.Command // where one could not be read, its result says why
	results []lock.Result
}

func readBatch(w http.ResponseWriter, r *http.Request) (batch, error) {
	body, err := readBody(new(bytes.Buffer), w, r, MaxBatchBodySize)
	if err != nil {
		return batch{}, err
	}
	items, err := itemsOf(body)
	if err != nil {
		return batch{}, err
	}
	b := batch{items: make([]lock.Command, len(items)), results: make([]lock.Result, len(items))}
	for i := range items {
		b.items[i], b.results[i].Err = items[i].command()
	}
	return b, nil
}

// do has the Service do the items that could be read.
func (b batch) do(ctx context.Context, locks lock.Service) {
	asked, places := make([]lock.Command, 0, len(b.items)), make([]int, 0, len(b.items))
	for i, item := range b.items {
		if b.results[i].Err == nil {
			asked, places = append(asked, item), append(places, i)
		}
	}
	for i, result := range locks.Batch(ctx, asked) {
		b.results[places[i]] = result
	}
}

// logRefused logs the first refusal with each code. The others mostly have the same
// reason, and there may be a thousand.
func (s *Server) logRefused(r *http.Request, b batch) {
	seen := make(map[lock.Code]bool)
	for _, result := range b.results {
		if result.Err == nil {
			continue
		}
		if e := refusalOf(result.Err); !seen[e.Code] {
			seen[e.Code] = true
			s.logRefusal(r, e, result.Err)
		}
	}
}
