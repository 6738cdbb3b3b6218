package result

import (
	"fmt"
	"maps"
	"slices"
)

// String returns a summary of the run in one line.
func (r Run) String() string {
	line := fmt.Sprintf("%d  %-13s  %-16s ", r.Round, r.Workload, r.System)
	if r.Error != "" {
		return line + r.Error
	}
	line += fmt.Sprintf("%8.0f %s/s (%d)  CPU %.0f+%.0f+%.0f µs",
		r.PerSecond, r.Unit, r.Operations, r.CPU.Client, r.CPU.Server, r.CPU.Database)
	if r.WALBytes != nil {
		line += fmt.Sprintf("  WAL %.0f B, %.3f fsyncs", *r.WALBytes, *r.Fsyncs)
	}
	for _, what := range slices.Sorted(maps.Keys(r.Latency)) {
		line += fmt.Sprintf("  %s %.0f/%.0f", what, r.Latency[what].P50, r.Latency[what].P99)
	}
	if r.Fairness != nil {
		line += fmt.Sprintf("  Jain %.4f, longest wait %.1f", *r.Fairness, *r.LongestWait)
	}
	if r.Inversions > 0 {
		line += fmt.Sprintf("  %d tokens out of order", r.Inversions)
	}
	return line
}
