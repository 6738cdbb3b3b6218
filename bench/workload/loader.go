package workload

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

// runLoader measures a system that generates its own load. That load corresponds only to the workload
// without contention. The measurement includes the start of the load.
func (w Workload) runLoader(ctx context.Context, s system.Loader, o Options, probe *measure.Probe, r *result.Run) error {
	if !w.matchesLoader {
		return system.ErrUnsupported
	}
	from, errFrom := probe.Mark(ctx)
	l, err := s.Load(ctx, w.Clients, o.Measured)
	to, errTo := probe.Mark(ctx)
	if err := errors.Join(errFrom, err, errTo); err != nil {
		return err
	}
	r.Unit, r.Operations, r.Seconds = l.Unit, len(l.Latencies), l.Elapsed.Seconds()
	r.PerSecond = float64(r.Operations) / r.Seconds
	r.Latency = map[string]result.Quantile{l.Unit: result.Quantiles(l.Latencies)}
	to.Client = from.Client + l.CPU
	r.Spent(from, to)
	return nil
}
