package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

var errNotTheAnswer = errors.New("the answer is not one to this request")

// resultsFrom returns what an answer says came of each of the items, which were
// sent at that instant. It fails unless it is the answer to a batch of those.
func resultsFrom(text []byte, items []lock.Command, sent time.Time) ([]lock.Result, error) {
	r := reader{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
	var results []lock.Result
	r.object(func(member []byte) {
		if string(member) == `"results"` {
			results = r.results(items, sent)
		} else {
			r.skip()
		}
	})
	if r.err == nil && len(results) != len(items) {
		r.err = errNotTheAnswer
	}
	if _, err := r.ReadToken(); r.err == nil && !errors.Is(err, io.EOF) {
		r.err = errors.New("something follows the answer")
	}
	return results, r.err
}

func (r *reader) results(items []lock.Command, sent time.Time) []lock.Result {
	results := make([]lock.Result, 0, len(items))
	r.list(func() {
		if len(results) == len(items) {
			r.fail(errNotTheAnswer)
			return
		}
		results = append(results, r.result(items[len(results)], sent))
	})
	return results
}

// result reads what came of the item.
func (r *reader) result(item lock.Command, sent time.Time) (out lock.Result) {
	status, problem := 0, (*openapi.Problem)(nil)
	r.object(func(member []byte) {
		switch string(member) {
		case `"status"`:
			status = int(r.number())
		case `"lease"`:
			out.Grant = r.lease(item, sent)
		case `"problem"`:
			problem = r.problem()
		default:
			r.skip()
		}
	})
	if status/100 != 2 {
		if problem == nil || problem.Code == "" {
			r.fail(errNotTheAnswer)
			return lock.Result{}
		}
		return lock.Result{Err: itemRefusal(*problem, status)}
	}
	if !answers(item, out.Grant) {
		r.fail(errNotTheAnswer)
	}
	_, acquires := item.(lock.Acquire)
	out.Grant.Replayed = acquires && status == http.StatusOK
	return out
}

func (r *reader) problem() *openapi.Problem {
	v, p := r.value(), new(openapi.Problem)
	if r.err == nil {
		r.err = json.Unmarshal(v, p)
	}
	return p
}

// lease reads the lease that the item was given.
func (r *reader) lease(item lock.Command, sent time.Time) (g lock.Grant) {
	var name, holder string
	switch c := item.(type) {
	case lock.Acquire:
		name, holder = c.Name, c.Holder
	case lock.Renew:
		name = c.Name
	}
	r.object(func(member []byte) {
		switch string(member) {
		case `"name"`:
			g.Name = r.string(name)
		case `"lease_id"`:
			g.ID = r.id()
		case `"fencing_token"`:
			g.Token = lock.Token(r.number())
		case `"slot"`:
			g.Slot = int(r.number())
		case `"mode"`:
			g.Mode = lock.ModeOf(r.string(lock.Exclusive.String()))
		case `"holder"`:
			g.Holder = r.string(holder)
		case `"ttl_ms"`:
			g.TTL = r.ms()
		case `"grace_ms"`:
			g.Grace = r.ms()
		case `"max_hold_ms"`:
			g.MaxHold = r.ms()
		case `"acquired_at"`:
			g.AcquiredAt = r.instant()
		case `"expires_at"`:
			g.ExpiresAt = r.instant()
		case `"expires_in_ms"`:
			g.Until = sent.Add(r.ms())
		case `"metadata"`:
			g.Metadata = json.RawMessage(r.value().Clone())
		default:
			r.skip()
		}
	})
	return g
}

// answers is whether a grant is what the item asked for.
func answers(item lock.Command, g lock.Grant) bool {
	switch c := item.(type) {
	case lock.Acquire:
		return g.Name == c.Name && g.ID == c.LeaseID && g.Token > 0
	case lock.Renew:
		return g.Name == c.Name && g.ID == c.LeaseID && g.Token > 0
	}
	return g.ID == lock.LeaseID{}
}
