package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
)

// idleStreams is the default limit on streams of a replica.
const idleStreams = 2000

// repeatCall calls do with its own connection until the time of a noise is over, and returns the number of
// calls.
func (n *noise) repeatCall(ctx context.Context, do func(*httpConn) error) (calls int, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.size.each)
	defer cancel()
	c, err := n.httpConn()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for ; ctx.Err() == nil; calls++ {
		if err := do(c); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

// batches sends the largest batches back to back: acquires of a thousand locks, and their releases.
func (n *noise) batches(ctx context.Context) error {
	var leases []uuid.UUID
	calls, err := n.repeatCall(ctx, func(c *httpConn) error {
		var items []string
		if leases == nil {
			for i := range lock.MaxBatch {
				leases = append(leases, uuid.New())
				items = append(items,
					fmt.Sprintf(`{"op": "acquire", "name": "batch:%d", "lease_id": "%s", "holder": "batches"}`, i,
						leases[i]))
			}
		} else {
			for i, id := range leases {
				items = append(items, fmt.Sprintf(`{"op": "release", "name": "batch:%d", "lease_id": "%s"}`, i, id))
			}
			leases = nil
		}
		return n.expectOK(c, n.request(http.MethodPost, "/v1/batch", "", `{"items": [`+strings.Join(items, ", ")+`]}`),
			nil)
	})
	n.t.Logf("%d batches of %d were answered", calls, lock.MaxBatch)
	return err
}

// expectOK sends a request, whose answer must be 200, and decodes it into to unless that is nil.
func (n *noise) expectOK(c *httpConn, text string, to any) error {
	got, err := c.roundTrip(text)
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return fmt.Errorf("the noise is answered %v", got)
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(got.text, to)
}

// fillList inserts free locks. It vacuums and analyzes the table, since without statistics PostgreSQL plans for
// a small one.
func (n *noise) fillList() {
	n.t.Helper()
	began := time.Now()
	_, err := n.admin.Exec(n.t.Context(), `insert into paddock.records (name, revision, token)
		select 'listed:' || to_char(i, 'FM0000000'), 2, 1 from generate_series(1, $1::integer) i`, n.size.locks)
	n.must(err)
	_, err = n.admin.Exec(n.t.Context(), "vacuum (analyze) paddock.records")
	n.must(err)
	n.t.Logf("%d locks were inserted in %v", n.size.locks, time.Since(began).Round(time.Millisecond))
}

// lists reads the list of all locks page by page, and concurrently the lists of one holder's locks and of held
// locks, for which the service must scan all locks.
func (n *noise) lists(ctx context.Context) error {
	var all errgroup.Group
	for _, query := range []url.Values{{}, {"holder": {"a holder without a lock"}}, {"state": {"held"}}} {
		query.Set("limit", fmt.Sprint(lock.MaxLimit))
		all.Go(func() error {
			cursor, listed := "", 0
			calls, err := n.repeatCall(ctx, func(c *httpConn) error {
				query.Set("cursor", cursor)
				if cursor == "" {
					query.Del("cursor")
				}
				var page struct {
					Locks []struct{} `json:"locks"`
					Next  string     `json:"next_cursor"`
				}
				err := n.expectOK(c, n.request(http.MethodGet, "/v1/locks?"+query.Encode(), "", ""), &page)
				cursor, listed = page.Next, listed+len(page.Locks)
				return err
			})
			n.t.Logf("%d pages with %d locks: %v", calls, listed, query)
			return err
		})
	}
	return all.Wait()
}

// streams opens streams that receive no events, and keeps them open for a while.
func (n *noise) streams(ctx context.Context) error {
	var conns []*http2Conn
	defer func() {
		for _, w := range conns {
			_ = w.Close() // the result does not matter
		}
	}()
	for open := 0; open < n.size.streams; {
		w, err := n.replicas[len(conns)%len(n.replicas)].http2Conn()
		if err != nil {
			return err
		}
		conns = append(conns, w)
		for range min(streamsPerConn, n.size.streams-open) {
			if _, err := w.open(http.MethodGet, "/v1/events/stream?prefix=silent:", "", "", true); err != nil {
				return err
			}
			open++
		}
		go func() { _ = w.each(func(uint32, []byte, bool) error { return nil }) }() // ends with the connection
	}
	sleepFor(ctx, n.size.each)
	return nil
}
