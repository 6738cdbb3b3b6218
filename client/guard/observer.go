package guard

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An Observer sees what guards do, for metrics: here renewals fail, which the service cannot see. Packages guardprom
// and guardotel have one for Prometheus and one for OpenTelemetry. Its methods may be called by several goroutines at
// once. They must return at once, and must not use the Lease. Of a Session, the name is its public name, and Renewed
// has its heartbeats; its leases are not renewed. Of several locks that were acquired together, the name is all of
// their names in order, with commas between them: each step is seen once for the set.
type Observer interface {
	// Acquired is called when an acquire has ended: how long it took, waits and retries included, and its error.
	Acquired(name string, took time.Duration, err error)
	// Renewed is called when an attempt to renew was answered, or was given up with err. left is the share of the TTL
	// that was left then; below Options.Margin the lease counts as lost.
	Renewed(name string, left float64, err error)
	// AtRisk is called when a lease gets at risk, because a renewal has failed with err.
	AtRisk(name string, err error)
	// Lost is called when a lease is lost.
	Lost(name string, err error)
	// Released is called when a lease was released that was held until then: for how long, and the error of the
	// release.
	Released(name string, held time.Duration, err error)
}

// Outcome returns a label for what a call has come to: done if err is nil, the code of the error, such as lock_held,
// or "canceled" if the caller's context has ended.
func Outcome(done string, err error) string {
	code := lock.ErrInternal
	switch {
	case err == nil:
		return done
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		code = "canceled"
	}
	errors.As(err, &code) // of a refusal, whatever caused it
	return string(code)
}

// noObserver ignores everything.
type noObserver struct{}

func (noObserver) Acquired(string, time.Duration, error) {}
func (noObserver) Renewed(string, float64, error)        {}
func (noObserver) AtRisk(string, error)                  {}
func (noObserver) Lost(string, error)                    {}
func (noObserver) Released(string, time.Duration, error) {}

// observed runs an acquirer for its Observer.
func (a *acquirer) observed(ctx context.Context) (lock.Grant, time.Duration, error) {
	began := time.Now()
	g, suspended, err := a.run(ctx)
	a.opts.Observer.Acquired(joined(a.names), time.Since(began), err)
	return g, suspended, err
}

// observeRenewal shows the Observer an attempt. The caller holds mu, and has not changed the deadline yet.
func (l *heart) observeRenewal(err error) {
	left := l.deadline.Add(l.opts.Margin).Sub(l.clock.now())
	l.opts.Observer.Renewed(l.name, left.Seconds()/l.opts.TTL.Seconds(), err)
}
