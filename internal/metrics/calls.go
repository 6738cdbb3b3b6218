package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
)

// ops says how each call is counted: with which outcome, if there is no error; and with which label, if it is about a
// session or shows a stale token. Without an outcome only the stale tokens are counted.
var ops = [...]struct{ label, done string }{
	observe.Acquire:       {done: "granted"},
	observe.Renew:         {done: "renewed"},
	observe.Release:       {done: "released"},
	observe.OpenSession:   {"open", "opened"},
	observe.RenewSession:  {"renew", "renewed"},
	observe.CloseSession:  {"close", "closed"},
	observe.RevokeSession: {"revoke", "revoked"},
	observe.WriteFenced:   {label: "write"},
	observe.VerifyToken:   {label: "verify"},
	observe.ReportStale:   {label: "report"},
}

// staleOps are the calls that show stale tokens.
var staleOps = []observe.Op{observe.WriteFenced, observe.VerifyToken, observe.ReportStale}

// Call counts a call by its outcome, and the stale token that it showed.
func (m *Metrics) Call(c observe.Call) {
	if c.Stale {
		m.stale(c.Op).Inc()
	}
	if ops[c.Op].done == "" {
		return
	}
	m.calls(c).Inc()
	if c.Waited > 0 {
		c.Replayed = false // a grant that was found again was waited for all the same
		m.waits.WithLabelValues(c.Mode.String(), outcomeOf(c)).Observe(c.Waited.Seconds())
	}
}

// calls returns the counter of calls with this outcome.
func (m *Metrics) calls(c observe.Call) prometheus.Counter {
	switch c.Op {
	case observe.Acquire:
		return m.acquires.WithLabelValues(c.Mode.String(), outcomeOf(c))
	case observe.Renew:
		return m.renewals.WithLabelValues(outcomeOf(c))
	case observe.Release:
		return m.releases.WithLabelValues(outcomeOf(c))
	}
	return m.sessions.WithLabelValues(ops[c.Op].label, outcomeOf(c))
}

// stale returns the counter of stale tokens that such calls have shown.
func (m *Metrics) stale(op observe.Op) prometheus.Counter {
	return m.staleness.WithLabelValues(ops[op].label)
}

// outcomeOf returns what came of the call: the error's code, if there is an error.
func outcomeOf(c observe.Call) string {
	switch {
	case c.Err != nil:
		code := lock.ErrInternal
		errors.As(c.Err, &code)
		return string(code)
	case c.Replayed:
		return "replayed"
	}
	return ops[c.Op].done
}
