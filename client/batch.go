package client

import (
	"bytes"
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
		return lock.FailAll(len(items), err)
	}
	results, places, b := make([]lock.Result, len(items)), make([]int, 0, len(items)), newBundle(len(items))
	for i, item := range items {
		item, err := carried(item)
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
	got, err := c.post(ctx, bytes.NewReader(b.close()), func() []lock.Command { return b.items })
	for i, place := range places {
		if err != nil {
			results[place].Err = cloneError(err)
		} else {
			results[place] = got.value[i]
		}
	}
	return results
}

// carried returns the item as it travels, with a LeaseID, or why it cannot.
func carried(item lock.Command) (lock.Command, error) {
	if err := lock.ValidateBatchItem(item); err != nil {
		return nil, err
	}
	switch c := item.(type) {
	case lock.Acquire:
		if c.LeaseID == (lock.LeaseID{}) {
			c.LeaseID = lock.LeaseID(uuid.New())
		}
		return c, carries(c)
	case lock.Renew:
		return c, cmp.Or(lock.CheckName(c.Name), carriesMetadata(c.Metadata))
	}
	return item, lock.CheckName(item.Names()[0])
}

// A bundle is a batch that is written. Make one with newBundle.
type bundle struct {
	items []lock.Command
	text  []byte
}

// newBundle returns an empty bundle for about that many items.
func newBundle(items int) *bundle {
	return &bundle{
		items: make([]lock.Command, 0, items),
		text:  append(make([]byte, 0, 256*(items+1)), `{"items":[`...),
	}
}

// add writes an item.
func (b *bundle) add(item lock.Command) {
	if len(b.items) > 0 {
		b.text = append(b.text, ',')
	}
	b.items, b.text = append(b.items, item), appendItem(b.text, item)
}

// close ends the text and returns it.
func (b *bundle) close() []byte {
	b.text = append(b.text, "]}"...)
	return b.text
}

// post sends a batch of the items that there are once it is sent. The error is that of the
// batch as a whole.
func (c *Client) post(ctx context.Context, body io.Reader, items func() []lock.Command, edit ...openapi.RequestEditorFn) (answer[[]lock.Result], error) {
	return call[[]lock.Result]{
		changes: true, body: body, limit: maxMany, success: []int{http.StatusOK},
		parse: func(text []byte, sent time.Time) ([]lock.Result, error) { return resultsFrom(text, items(), sent) },
		send: func(ctx context.Context, body io.Reader) (*http.Response, error) {
			return c.api.BatchWithBody(ctx, contentJSON, body, edit...)
		},
	}.do(ctx)
}
