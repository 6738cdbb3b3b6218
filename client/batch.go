package client

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// Batch sends the items in one request, see paddock.Service. What is documented for Acquire, Renew and Release holds for
// each item, too. The service accepts 1 MiB a request: of items with much metadata send fewer than paddock.MaxBatch at a
// time.
func (c *Client) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if err := paddock.CheckBatch(len(items)); err != nil {
		return paddock.FailAll(len(items), err)
	}
	results, places, b := make([]paddock.Result, len(items)), make([]int, 0, len(items)), newBatchBody(len(items))
	for i, item := range items {
		item, err := validated(item)
		if err != nil {
			results[i].Err = err
			continue
		}
		b.add(item)
		places = append(places, i)
	}
	if len(places) == 0 {
		return results
	}
	text := b.close()
	got, err := c.post(ctx, func() io.Reader { return bytes.NewReader(text) }, func() []lock.Command { return b.items }, nil, 0)
	for i, place := range places {
		if err != nil {
			results[place].Err = cloneError(err)
		} else {
			results[place] = got.value[i]
		}
	}
	return results
}

// validated returns the item as it is sent, with a LeaseID, or an error if it cannot be sent.
func validated(item lock.Command) (lock.Command, error) {
	if err := paddock.ValidateBatchItem(item); err != nil {
		return nil, err
	}
	switch c := item.(type) {
	case lock.Acquire:
		if c.LeaseID == (lock.LeaseID{}) {
			c.LeaseID = lock.LeaseID(uuid.New())
		}
		return c, checkAcquire(c)
	case lock.Renew:
		return c, cmp.Or(checkNames("names", c.Locks), checkMetadata(c.Metadata))
	}
	return item, checkNames("names", item.Names())
}

// A batchBody is the body of a batch. Make one with newBatchBody.
type batchBody struct {
	items []lock.Command
	text  []byte
}

// newBatchBody returns a body without items, with room for about that many.
func newBatchBody(items int) *batchBody {
	return &batchBody{
		items: make([]lock.Command, 0, items),
		text:  append(make([]byte, 0, 256*(items+1)), `{"items":[`...),
	}
}

// add appends an item.
func (b *batchBody) add(item lock.Command) {
	if len(b.items) > 0 {
		b.text = append(b.text, ',')
	}
	b.items, b.text = append(b.items, item), wire.AppendItem(b.text, item)
}

// close ends the text and returns it.
func (b *batchBody) close() []byte {
	b.text = append(b.text, "]}"...)
	return b.text
}

// post sends a batch. The function items returns its items once they are sent. left is the time until its callers give
// up, zero if the context says that. The error is that of the batch as a whole.
func (c *Client) post(
	ctx context.Context, body func() io.Reader, items func() []lock.Command, setBody func(*http.Request), left time.Duration,
) (answer[[]paddock.Result], error) {
	return call[[]paddock.Result]{
		request: request{method: http.MethodPost, path: "/v1/batch", body: body, setBody: setBody},
		changes: true, left: left, limit: maxListResponse,
		parse: func(text []byte, sent time.Time) ([]paddock.Result, error) {
			return wire.ParseResults(text, items(), sent, func(p api.Problem, status int) error {
				return since(sent, itemRefusal(p, status))
			})
		},
	}.do(ctx, c)
}
