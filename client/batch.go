package client

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// Batch sends the items in one request, see lock.Service. What is said of Acquire,
// Renew and Release holds for each item, too. The service takes 1 MiB a request: of items with much
// metadata send fewer than lock.MaxBatch at a time.
func (c *Client) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	if err := lock.CheckBatch(len(items)); err != nil {
		return lock.RefuseAll(len(items), err)
	}
	results := make([]lock.Result, len(items))
	var sent []sentItem
	for i, item := range items {
		out, err := itemTo(item)
		if out.place = i; err != nil {
			results[i].Err = err
			continue
		}
		sent = append(sent, out)
	}
	if len(sent) > 0 {
		c.sendBatch(ctx, sent, results)
	}
	return results
}

// A sentItem is an item on its way.
type sentItem struct {
	place int    // in the batch
	op    string // of openapi.yaml
	body  any    // of a type of openapi.yaml
	name  string
	id    lock.LeaseID
}

// itemTo returns the item as it travels, or why it cannot.
func itemTo(item lock.Command) (sentItem, error) {
	if err := lock.CheckItem(item); err != nil {
		return sentItem{}, err
	}
	switch c := item.(type) {
	case lock.Acquire:
		if c.LeaseID == (lock.LeaseID{}) {
			c.LeaseID = lock.LeaseID(uuid.New())
		}
		a := acquireTo(c)
		return sentItem{op: string(openapi.Acquire), name: c.Name, id: c.LeaseID, body: openapi.BatchAcquire{
			Op: openapi.Acquire, Name: c.Name, LeaseID: a.LeaseID, Holder: a.Holder, Mode: a.Mode, Capacity: a.Capacity,
			TTLMs: a.TTLMs, GraceMs: a.GraceMs, MaxHoldMs: a.MaxHoldMs, Metadata: a.Metadata,
		}}, carries(c)
	case lock.Renew:
		return sentItem{op: string(openapi.Renew), name: c.Name, id: c.LeaseID, body: openapi.BatchRenew{
			Op: openapi.Renew, Name: c.Name, LeaseID: uuid.UUID(c.LeaseID), TTLMs: toMs(c.TTL), Metadata: c.Metadata,
		}}, cmp.Or(lock.CheckName(c.Name), carriesMetadata(c.Metadata))
	case lock.Release:
		return sentItem{op: string(openapi.Release), name: c.Name, id: c.LeaseID, body: openapi.BatchRelease{
			Op: openapi.Release, Name: c.Name, LeaseID: uuid.UUID(c.LeaseID),
		}}, lock.CheckName(c.Name)
	}
	return sentItem{}, nil
}

// sendBatch sends the items and puts what came of them into the results.
func (c *Client) sendBatch(ctx context.Context, items []sentItem, results []lock.Result) {
	body := openapi.BatchRequest{Items: make([]openapi.BatchItem, len(items))}
	for i, item := range items {
		body.Items[i] = item.body
	}
	got, err := call[openapi.BatchAnswer]{
		changes: true, body: body, limit: maxMany, success: []int{http.StatusOK}, answers: isBatch(items),
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.BatchWithBody(ctx, contentJSON, body)
		},
	}.do(ctx)
	for i, item := range items {
		if err != nil {
			results[item.place].Err = err
			continue
		}
		results[item.place] = item.result(got.sent, got.value.Results[i])
	}
}

// isBatch returns whether an answer tells what came of those items.
func isBatch(items []sentItem) func(openapi.BatchAnswer) bool {
	return func(b openapi.BatchAnswer) bool {
		for i, r := range b.Results {
			if i == len(items) || !items[i].isAnswered(r) {
				return false
			}
		}
		return len(b.Results) == len(items)
	}
}

func (s sentItem) isAnswered(r openapi.BatchResult) bool {
	switch {
	case r.Status >= http.StatusBadRequest:
		return r.Problem != nil && r.Problem.Code != ""
	case s.op == string(openapi.Release):
		return r.Status == http.StatusNoContent
	}
	return r.Lease != nil && isLease(s.name, s.id)(*r.Lease)
}

func (s sentItem) result(sent time.Time, r openapi.BatchResult) lock.Result {
	switch {
	case r.Problem != nil:
		return lock.Result{Err: problemFrom(*r.Problem, &http.Response{StatusCode: r.Status})}
	case r.Lease != nil:
		g := grantFrom(answer[openapi.Lease]{sent: sent, value: *r.Lease})
		g.Replayed = s.op == string(openapi.Acquire) && r.Status == http.StatusOK
		return lock.Result{Grant: g}
	}
	return lock.Result{}
}
