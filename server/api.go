package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// An api implements the operations of openapi.yaml: decode, call the Service, reply.
type api struct {
	*Server
	document document
}

var _ openapi.ServerInterface = (*api)(nil)

// A document is openapi.yaml in both of its forms.
type document struct{ yaml, json []byte }

func newAPI(s *Server) *api {
	json, err := yaml.YAMLToJSON(paddock.OpenAPI)
	if err != nil {
		panic(fmt.Sprintf("the embedded openapi.yaml is not YAML: %v", err))
	}
	return &api{Server: s, document: document{yaml: paddock.OpenAPI, json: json}}
}

// AcquireLock acquires a lock, or waits for it.
func (a *api) AcquireLock(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Acquire)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		grant, err := a.locks.Acquire(ctx, in)
		return granted(grant), err
	})
}

// RenewLease moves the end of a lease.
func (a *api) RenewLease(w http.ResponseWriter, r *http.Request, name wire.Name) {
	execute(a, w, r, name, (*wire.Decoder).Renew, a.locks.Renew, wire.LeaseOf)
}

// ReleaseLease ends a lease.
func (a *api) ReleaseLease(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, name, (*wire.Decoder).Release)
		if err != nil {
			return reply{}, err
		}
		return noContent(), a.locks.Release(ctx, in)
	})
}

// RevokeLock takes a lease from its holder.
func (a *api) RevokeLock(w http.ResponseWriter, r *http.Request, name wire.Name) {
	execute(a, w, r, name, (*wire.Decoder).Revoke, a.locks.Revoke, wire.LockOf)
}

// VerifyToken tells whether a token is current.
func (a *api) VerifyToken(w http.ResponseWriter, r *http.Request) {
	execute(a, w, r, "", (*wire.Decoder).Verify, a.locks.VerifyToken, wire.VerificationOf)
}

// WriteFenced writes a resource under a token.
func (a *api) WriteFenced(w http.ResponseWriter, r *http.Request, key wire.Key) {
	execute(a, w, r, key, (*wire.Decoder).FencedWrite, a.locks.WriteFenced, wire.FencedValueOf)
}

// execute decodes a command, calls the Service with it and replies with its value.
func execute[Command, Value, Model any](
	a *api, w http.ResponseWriter, r *http.Request, name string,
	from func(*wire.Decoder, string, []byte) (Command, error),
	call func(context.Context, Command) (Value, error), to func(Value) Model,
) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, name, from)
		if err != nil {
			return reply{}, err
		}
		value, err := call(ctx, in)
		return ok(to(value)), err
	})
}

// GetLock returns a lock, or waits until it differs from what the client has.
func (a *api) GetLock(w http.ResponseWriter, r *http.Request, name wire.Name, params wire.GetLockParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := params.Domain(name)
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		seen := parseIfNoneMatch(wire.ValueOf(params.IfNoneMatch))
		lock, err := a.watchUntilChanged(ctx, in, seen)
		return seen.reply(lock), err
	})
}

// GetQueue returns the waiters of a lock.
func (a *api) GetQueue(w http.ResponseWriter, r *http.Request, name wire.Name) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		queue, err := a.locks.Queue(ctx, name)
		return ok(wire.QueueOf(queue)), err
	})
}

// ListLocks returns a page of the known locks.
func (a *api) ListLocks(w http.ResponseWriter, r *http.Request, params wire.ListLocksParams) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := params.Domain()
		if err != nil {
			return reply{}, err
		}
		page, err := a.locks.Locks(ctx, in)
		return ok(wire.LockPageOf(page)).withNext(page.Next), err
	})
}

// ListEvents returns a page of events, or waits for one. An empty page has a cursor for later, but no link to a next
// page.
func (a *api) ListEvents(w http.ResponseWriter, r *http.Request, params wire.ListEventsParams) {
	a.answerLate(w, r, func() (reply, error) {
		in, err := params.Domain()
		if err != nil {
			return reply{}, err
		}
		ctx, done := a.waitContext(w, r, in.Wait)
		defer done()
		page, err := a.locks.Events(ctx, in)
		out := ok(wire.EventPageOf(page))
		if len(page.Items) > 0 {
			out = out.withNext(page.Next)
		}
		return out, err
	})
}

// ReadFenced returns the resource of that key.
func (a *api) ReadFenced(w http.ResponseWriter, r *http.Request, key wire.Key) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		value, err := a.locks.ReadFenced(ctx, key)
		return ok(wire.FencedValueOf(value)), err
	})
}

// reply returns the reply with the lock, without it if the client has that version.
func (s ifNoneMatch) reply(l lock.Lock) reply {
	r := reply{status: http.StatusNotModified, tag: etagOf(l)}
	if !s.has(l.Version()) {
		r.status, r.body = http.StatusOK, wire.LockOf(l)
	}
	return r
}

// etagOf returns the lock's ETag. It is weak, because answers with the same tag may differ in the time left.
func etagOf(l lock.Lock) string { return `W/"` + l.Version() + `"` }

// An ifNoneMatch is the set of versions in an If-None-Match header. The zero value is empty.
type ifNoneMatch struct {
	any      bool
	versions []string
}

// parseIfNoneMatch reads the header up to the first syntax error (RFC 9110). Unknown tags match no lock.
func parseIfNoneMatch(header string) ifNoneMatch {
	if strings.TrimSpace(header) == "*" {
		return ifNoneMatch{any: true}
	}
	var s ifNoneMatch
	for rest := header; ; {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
		version, after, whole := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		if !strings.HasPrefix(rest, `"`) || !whole {
			return s
		}
		s.versions, rest = append(s.versions, version), after
	}
}

func (s ifNoneMatch) has(version string) bool { return s.any || slices.Contains(s.versions, version) }

// watchUntilChanged returns the lock as soon as its version is not in the set, or unchanged when the wait is over.
func (s *Server) watchUntilChanged(ctx context.Context, in lock.Watch, seen ifNoneMatch) (lock.Lock, error) {
	if in.Wait == 0 || !seen.any && len(seen.versions) == 0 {
		return s.locks.Lock(ctx, in.Name)
	}
	over := time.Now().Add(in.Wait)
	if !seen.any {
		in.Seen = seen.versions[0]
	}
	for {
		l, err := s.locks.Watch(ctx, in)
		in.Seen, in.Wait, ctx = l.Version(), time.Until(over), access.Continued(ctx)
		if err != nil || in.Wait <= 0 || !seen.has(in.Seen) {
			return l, err
		}
	}
}

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

// logRefused logs the first refusal with each code. The others, up to a thousand, mostly have the same reason.
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
