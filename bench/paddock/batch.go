package paddock

import (
	"bytes"
	"context"
	"fmt"

	"github.com/paddock-lock/paddock/bench/system"
)

// AcquireAll acquires the locks with one request.
func (c *Client) AcquireAll(ctx context.Context, names []string) ([]system.Lease, error) {
	answer, err := c.batch(ctx, names, func(i int) {
		c.body = append(append(append(c.body, `{"op":"acquire","name":"`...), names[i]...), `",`...)
		c.body = append(c.body, c.try[1:]...)
	})
	if err != nil {
		return nil, err
	}
	results := bytes.Split(answer, []byte(`"lease":`))[1:]
	if len(results) != len(names) {
		return nil, fmt.Errorf("%d results of a batch of %d: %s", len(results), len(names), answer)
	}
	leases := make([]system.Lease, len(names))
	for i, result := range results {
		if leases[i], err = c.lease(names[i], result); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// ReleaseAll releases the locks with one request.
func (c *Client) ReleaseAll(ctx context.Context, leases []system.Lease) error {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.(*lease).name
	}
	answer, err := c.batch(ctx, names, func(i int) {
		c.body = append(append(append(c.body, `{"op":"release","name":"`...), names[i]...), `","lease_id":"`...)
		id := &leases[i].(*lease).id
		c.body = append(append(c.body, id[:]...), `"}`...)
	})
	if err != nil {
		return err
	}
	if done := bytes.Count(answer, []byte(`"status":204`)); done != len(leases) {
		return fmt.Errorf("%d of a batch of %d were released: %s", done, len(leases), answer)
	}
	return nil
}

// batch sends a request with an item for each name, which add appends to the body, and returns the
// answer. It returns an error if any item is refused.
func (c *Client) batch(ctx context.Context, names []string, add func(i int)) ([]byte, error) {
	c.body = append(c.body[:0], `{"items":[`...)
	for i := range names {
		if i > 0 {
			c.body = append(c.body, ',')
		}
		add(i)
	}
	c.body = append(c.body, `]}`...)
	status, answer, err := c.conn.Post(ctx, "/v1/batch", c.body)
	switch {
	case err != nil:
		return nil, err
	case status == 404:
		return nil, system.ErrUnsupported // an older Paddock without batches
	case status != 200 || bytes.Contains(answer, []byte(`"problem":`)):
		return nil, fmt.Errorf("a batch of %d: %d %s", len(names), status, answer)
	}
	return answer, nil
}
