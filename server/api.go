package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// documentJSON returns openapi.yaml as JSON. It is converted when first asked for: that takes longer than all else that
// a server does at its start.
var documentJSON = sync.OnceValue(func() []byte {
	json, err := yaml.YAMLToJSON(paddock.OpenAPI)
	if err != nil {
		panic(fmt.Sprintf("the embedded openapi.yaml is not YAML: %v", err))
	}
	return json
})

// acquireLock acquires a lock, or waits for it.
func (s *Server) acquireLock(w http.ResponseWriter, r *http.Request) {
	s.acquire(w, r, s.locks, request.Read[request.Acquire], grantReply)
}

// acquire acquires locks, or waits.
func (s *Server) acquire(
	w http.ResponseWriter, r *http.Request, locks paddock.Service,
	from func(string, []byte) (*lock.Acquire, error), to func(lock.Grant) reply,
) {
	in, err := decode(w, r, from)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	out, err := s.await(w, r, locks, in, to)
	s.respond(w, r, out, err)
}

// await acquires locks, or waits. It is on the stack of every call that waits, with little else.
func (s *Server) await(
	w http.ResponseWriter, r *http.Request, locks paddock.Service, in *lock.Acquire, to func(lock.Grant) reply,
) (reply, error) {
	ctx, done := s.waitContext(w, r, in.Wait)
	defer done()
	grant, err := locks.Acquire(ctx, *in)
	return to(grant), err
}

// renewLease extends a lease.
func (s *Server) renewLease(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.Renew], s.locks.Renew, wire.LeaseOf)
}

// releaseLease ends a lease.
func (s *Server) releaseLease(w http.ResponseWriter, r *http.Request) {
	s.release(w, r, s.locks, request.Read[request.Release])
}

// release ends leases.
func (s *Server) release(
	w http.ResponseWriter, r *http.Request, locks paddock.Service,
	from func(string, []byte) (lock.Release, error),
) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, from)
		if err != nil {
			return reply{}, err
		}
		return noContent(), locks.Release(ctx, in)
	})
}

// revokeLock ends a lease of another holder.
func (s *Server) revokeLock(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.Revoke], s.locks.Revoke, wire.LockOf)
}

// verifyToken returns the status of a token.
func (s *Server) verifyToken(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.Verify], s.locks.VerifyToken, wire.VerificationOf)
}

// reportStaleToken records that a resource has rejected a stale token.
func (s *Server) reportStaleToken(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.ReportStale], s.locks.ReportStale, wire.ReportResultOf)
}

// writeFenced writes a resource under a token.
func (s *Server) writeFenced(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.FencedWrite], s.locks.WriteFenced, wire.FencedValueOf)
}

// execute decodes a command, calls the Service with it and replies with the result.
func execute[Command, Value, Model any](
	s *Server, w http.ResponseWriter, r *http.Request,
	from func(string, []byte) (Command, error),
	call func(context.Context, Command) (Value, error), to func(Value) Model,
) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := decode(w, r, from)
		if err != nil {
			return reply{}, err
		}
		value, err := call(ctx, in)
		return ok(to(value)), err
	})
}

// getLock returns a lock. With wait_ms it waits until the lock differs from the versions that the client has.
func (s *Server) getLock(w http.ResponseWriter, r *http.Request) {
	s.answerUntimed(w, r, func() (reply, error) {
		in, err := watchIn(r)
		if err != nil {
			return reply{}, err
		}
		ctx, done := s.waitContext(w, r, in.Wait)
		defer done()
		seen := parseIfNoneMatch(strings.Join(r.Header.Values("If-None-Match"), ", "))
		lock, err := s.watchUntilChanged(ctx, in, seen)
		return seen.reply(lock), err
	})
}

// getQueue returns the waiters of a lock.
func (s *Server) getQueue(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		queue, err := s.locks.Queue(ctx, nameIn(r))
		return ok(wire.QueueOf(queue)), err
	})
}

// listHolds returns who held a lock.
func (s *Server) listHolds(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := holdQueryIn(r)
		if err != nil {
			return reply{}, err
		}
		list, err := paddock.ReadHolds(ctx, s.locks, in)
		return ok(wire.HoldListOf(list)), err
	})
}

// listLocks returns a page of the known locks.
func (s *Server) listLocks(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		in, err := lockQueryIn(r)
		if err != nil {
			return reply{}, err
		}
		page, err := s.locks.Locks(ctx, in)
		return ok(wire.LockPageOf(page)).withNext(page.Next), err
	})
}

// listEvents returns a page of events, or waits for one. An empty page may have a cursor to continue from, but no Link
// header.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	s.answerUntimed(w, r, func() (reply, error) {
		in, err := eventQueryIn(r)
		if err != nil {
			return reply{}, err
		}
		ctx, done := s.waitContext(w, r, in.Wait)
		defer done()
		page, err := s.locks.Events(ctx, in)
		out := ok(wire.EventPageOf(page))
		if len(page.Items) > 0 {
			out = out.withNext(page.Next)
		}
		return out, err
	})
}

// waitForEvents waits for events of several locks, or for the end of sessions.
func (s *Server) waitForEvents(w http.ResponseWriter, r *http.Request) {
	s.answerUntimed(w, r, func() (reply, error) {
		in, err := s.waitIn(w, r)
		if err != nil {
			return reply{}, err
		}
		ctx, done := s.waitContext(w, r, in.Wait)
		defer done()
		page, err := s.locks.Events(ctx, in)
		return ok(wire.EventPageOf(page)), err
	})
}

// waitIn returns the query in the body of a call that waits for events. It keeps no slot for the body.
func (s *Server) waitIn(w http.ResponseWriter, r *http.Request) (q paddock.EventQuery, err error) {
	release, err := s.reserveLargeBody(r)
	if err != nil {
		return q, err
	}
	defer release()
	body, err := readBody(new(bytes.Buffer), w, r, MaxWaitBodySize)
	if err != nil {
		return q, err
	}
	return request.Read[request.WaitForEvents]("", body)
}

// readFenced returns the resource with this key.
func (s *Server) readFenced(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		value, err := s.locks.ReadFenced(ctx, nameIn(r))
		return ok(wire.FencedValueOf(value)), err
	})
}

// reply returns 304 if the set has the lock's version, and 200 with the lock otherwise.
func (s ifNoneMatch) reply(l lock.Lock) reply {
	r := reply{status: http.StatusNotModified, tag: etagOf(l)}
	if !s.has(l.Version()) {
		r.status, r.body = http.StatusOK, wire.LockOf(l)
	}
	return r
}

// etagOf returns the lock's ETag. It is weak, because answers with the same tag may differ in as_of and expires_in_ms.
func etagOf(l lock.Lock) string { return `W/"` + l.Version() + `"` }

// An ifNoneMatch is the set of versions in an If-None-Match header. The zero value is empty.
type ifNoneMatch struct {
	any      bool
	versions []string
}

// parseIfNoneMatch reads the header up to the first syntax error (RFC 9110). A tag that is no version matches no lock.
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

// watchUntilChanged returns the lock as soon as its version is not in seen, or when the wait is over. Watch takes one
// version, so a change to another version in seen continues the wait.
func (s *Server) watchUntilChanged(ctx context.Context, in paddock.Watch, seen ifNoneMatch) (lock.Lock, error) {
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

// batch executes the items of a batch.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) {
		release, err := s.reserveLargeBody(r)
		if err != nil {
			return reply{}, err
		}
		defer release()
		body, err := readBody(new(bytes.Buffer), w, r, MaxBatchBodySize)
		if err != nil {
			return reply{}, err
		}
		b := batch{request: r}
		if b.items, b.results, err = request.Batch(body); err != nil {
			return reply{}, err
		}
		b.execute(ctx, s.locks)
		s.logRefused(b)
		return ok(b), nil
	})
}

// reserveLargeBody takes a slot for a large body until release is called. It fails if no slot is free. A body of at
// most MaxBodySize needs no slot.
func (s *Server) reserveLargeBody(r *http.Request) (release func(), err error) {
	if 0 <= r.ContentLength && r.ContentLength <= MaxBodySize {
		return func() {}, nil
	}
	select {
	case s.largeBodies <- struct{}{}:
		return func() { <-s.largeBodies }, nil
	default:
		return nil, &lock.Error{Code: lock.ErrUnavailable,
			Detail: "Too many large requests are being processed. Nothing was changed; retry this one, or send smaller ones."}
	}
}

// A batch is the items of one request and their results.
type batch struct {
	request *http.Request
	items   []lock.Command // undefined where decoding failed, and the result has the error
	results []paddock.Result
}

// execute runs the decoded items and stores their results.
func (b batch) execute(ctx context.Context, locks paddock.Service) {
	valid, indexes := make([]lock.Command, 0, len(b.items)), make([]int, 0, len(b.items))
	for i, item := range b.items {
		if b.results[i].Err == nil {
			valid, indexes = append(valid, item), append(indexes, i)
		}
	}
	for i, result := range locks.Batch(ctx, valid) {
		b.results[indexes[i]] = result
	}
}

// logRefused logs the first refusal with each code. A batch may have a thousand, and most have the same reason.
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

// encode returns the results as JSON. The remaining time of each lease is that at its encoding.
func (b batch) encode() []byte {
	var lease api.Lease
	return append(wire.AppendResults(nil, len(b.results), func(i int) api.BatchResult {
		result := b.results[i]
		if result.Err != nil {
			p := problemTo(b.request, refusalOf(result.Err), result.Err)
			return api.BatchResult{Status: p.Status, Problem: &p}
		}
		status := http.StatusOK
		switch b.items[i].(type) {
		case lock.Acquire:
			status = grantStatus(result.Grant.Replayed)
		case lock.Release:
			return api.BatchResult{Status: http.StatusNoContent}
		}
		lease = wire.LeaseOf(result.Grant)
		return api.BatchResult{Status: status, Lease: &lease}
	}), '\n')
}
