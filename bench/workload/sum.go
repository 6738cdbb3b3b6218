package workload

import (
	"time"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/result"
)

// sum sets the result from the counts of all workers and the costs between two marks.
func (b *activeRun) sum(r *result.Run, from, to measure.Mark) {
	samples := map[string][]time.Duration{}
	var served []int
	for _, w := range b.workers {
		n := int(w.operations.Load())
		r.Operations += n
		r.Inversions += w.inversions
		served = append(served, n)
		for what, took := range w.samples {
			samples[what] = append(samples[what], took...)
		}
	}
	r.Seconds = to.At.Sub(from.At).Seconds()
	r.PerSecond = float64(r.Operations) / r.Seconds
	r.Latency = map[string]result.Quantile{}
	for what, took := range samples {
		r.Latency[what] = result.Quantiles(took)
	}
	r.Spent(from, to)
	if each, ok := b.fsyncs.Ratio(); ok {
		r.Fsyncs = &each
	}
	if waits := r.Latency[waiting]; b.Contended && waits.Count > 0 {
		fairness, longest := jain(served), waits.Max/waits.Mean
		r.Fairness, r.LongestWait = &fairness, &longest
	}
}

// jain returns Jain's fairness index: 1 if all are served equally often, 1/n if only one of n is served.
func jain(served []int) float64 {
	var sum, squares float64
	for _, n := range served {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(served)) * squares)
}
