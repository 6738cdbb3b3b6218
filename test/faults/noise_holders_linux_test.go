package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// Holders that renew leases beside a noisy client.
const (
	noiseHolders = 50
	renewEvery   = quietTTL / 3
	renewRetry   = 50 * time.Millisecond // after a renewal that must be sent again
)

// A renewal is one answered renewal.
type renewal struct {
	sent time.Time
	took time.Duration
	lost bool // the lease was lost, or the answer came after its end by the holder's clock
}

// renewals collects the renewals of all holders.
type renewals struct {
	mu     sync.Mutex
	all    []renewal
	newest [noiseHolders]time.Time // when the newest answered renewal was sent
	err    error                   // first error of a holder
}

func (r *renewals) note(holder int, x renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.newest[holder] = append(r.all, x), x.sent
}

func (r *renewals) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// awaitAnswers waits until each holder has an answer to a renewal that it sent after that time.
func (r *renewals) awaitAnswers(ctx context.Context, after time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return retry(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		waiting := 0
		for _, sent := range r.newest {
			if sent.Before(after) {
				waiting++
			}
		}
		if r.err == nil && waiting > 0 {
			return fmt.Errorf("%d holders wait for an answer to a renewal", waiting)
		}
		return nil
	})
}

// renewalStats sum up the renewals of one phase.
type renewalStats struct {
	phase         string
	answered      int
	p50, p99, max time.Duration
	lost          int
}

func (f renewalStats) String() string {
	return fmt.Sprintf("%s: %d renewals, p50 %v, p99 %v, max %v, %d leases lost", f.phase, f.answered,
		f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond), f.max.Round(10*time.Microsecond), f.lost)
}

// stats returns the statistics of the renewals sent in the interval, and the first error of a holder. A phase
// shorter than the time between renewals may have none.
func (r *renewals) stats(phase string, from, to time.Time) (renewalStats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := renewalStats{phase: phase}
	var took []time.Duration
	for _, x := range r.all {
		if x.sent.Before(from) || !x.sent.Before(to) {
			continue
		}
		took = append(took, x.took)
		if x.lost {
			f.lost++
		}
	}
	if f.answered = len(took); f.answered > 0 {
		slices.Sort(took)
		f.p50, f.p99, f.max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return f, r.err
}

// A holder renews one lease through one replica, as a guard does.
type holder struct {
	*securedReplica
	*renewals
	number int
	ttl    time.Duration
	conn   *httpConn
	lease  uuid.UUID
	ends   time.Time // by its own clock: when the newest grant or renewal was sent, plus the TTL
}

// startHolders starts the holders. They use the replicas in turn and stop with the test.
func startHolders(replicas []*securedReplica, ttl time.Duration) *renewals {
	r := &renewals{}
	t := replicas[0].t
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range noiseHolders {
		h := &holder{securedReplica: replicas[i%len(replicas)], renewals: r, number: i, ttl: ttl}
		all.Go(func() {
			if err := h.run(ctx); err != nil && ctx.Err() == nil {
				r.fail(fmt.Errorf("holder %d: %w", h.number, err))
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return r
}

// run acquires the lock and renews the lease until ctx ends. It acquires the lock again when the lease is lost.
func (h *holder) run(ctx context.Context) error {
	defer func() {
		if h.conn != nil {
			_ = h.conn.Close() // the result does not matter
		}
	}()
	if err := h.acquire(ctx); err != nil {
		return err
	}
	for next := time.Now().Add(rand.N(renewEvery)); sleepFor(ctx, time.Until(next)); {
		sent := time.Now()
		got, err := h.call(ctx, "renew", fmt.Sprintf(`{"lease_id": "%s"}`, h.lease))
		if ctx.Err() != nil {
			return nil
		}
		now := time.Now()
		x := renewal{sent: sent, took: now.Sub(sent), lost: now.After(h.ends)}
		parsed, parseErr := got.fields()
		switch {
		case err == nil && got.status == http.StatusOK:
			h.ends = sent.Add(h.ttl)
		case err == nil && parseErr == nil && parsed.Code == lock.ErrLeaseLost:
			x.lost = true
		case err == nil && !isRetryable(parsed.Code):
			return fmt.Errorf("a renewal is answered %v", got)
		case !x.lost:
			next = now.Add(renewRetry)
			continue
		}
		h.note(h.number, x)
		next = sent.Add(renewEvery)
		if x.lost {
			if err := h.acquire(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// acquire acquires the lock under a new lease_id. It retries until the lock is granted.
func (h *holder) acquire(ctx context.Context) error {
	h.lease = uuid.New()
	ctx, cancel := context.WithTimeout(ctx, 2*stepTimeout)
	defer cancel()
	return retry(ctx, func() error {
		sent := time.Now()
		got, err := h.call(ctx, "acquire", fmt.Sprintf(`{"lease_id": "%s", "holder": "holder %d", "ttl_ms": %d}`,
			h.lease, h.number, h.ttl.Milliseconds()))
		if err == nil && got.status/100 != 2 {
			err = fmt.Errorf("an acquire is answered %v", got)
		}
		h.ends = sent.Add(h.ttl)
		return err
	})
}

// call sends a call about the lock and waits for the answer. After an error the next call opens a new
// connection.
func (h *holder) call(ctx context.Context, verb, body string) (answer, error) {
	if h.conn == nil {
		c, err := h.httpConn()
		if err != nil {
			return answer{}, err
		}
		h.conn = c
	}
	stop := context.AfterFunc(ctx, func() { _ = h.conn.SetDeadline(time.Unix(1, 0)) }) // it may be closed
	defer stop()
	got, err := h.conn.roundTrip(h.request(http.MethodPost, fmt.Sprintf("/v1/locks/kept:%02d/%s", h.number, verb), "",
		body))
	if err != nil {
		err = errors.Join(err, h.conn.Close())
		h.conn = nil
	}
	return got, err
}
