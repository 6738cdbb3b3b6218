package soak

import (
	"cmp"
	"slices"
)

// A Trend compares the median of a figure in the last third of a soak with that in the middle third.
type Trend struct {
	Figure string
	Unit   string
	Middle float64
	Last   float64
	Flat   bool
}

// The tolerated ratios. A figure that grows by more than a tenth within a soak could double within a day.
// Latencies vary more than that without a trend.
const (
	growthLimit   = 1.10
	varianceLimit = 1.25
)

// Trends returns the trends of all figures, nil for fewer than six intervals.
func Trends(all []Interval) []Trend {
	if len(all) < 6 {
		return nil
	}
	var trends []Trend
	for _, f := range figures() {
		third := len(all) / 3
		v := Trend{Figure: f.name, Unit: f.unit, Middle: median(all[third:2*third], f.of), Last: median(all[len(all)-third:], f.of)}
		v.Flat = v.Last <= v.Middle*f.limit
		if f.higherIsBetter {
			v.Flat = v.Last*f.limit >= v.Middle
		}
		trends = append(trends, v)
	}
	return trends
}

// A figure is a measure that should not change.
type figure struct {
	name, unit     string
	of             func(Interval) float64
	limit          float64 // tolerated ratio of the last third to the middle third
	higherIsBetter bool    // the limit applies to the inverse ratio
}

func figures() []figure {
	const megabyte = 1 << 20
	return []figure{
		{"rate", "pairs a second", func(s Interval) float64 { return s.Run.PerSecond }, growthLimit, true},
		{"acquire, p50", "µs", func(s Interval) float64 { return s.Run.Latency["acquire"].P50 }, varianceLimit, false},
		{"acquire, p99", "µs", func(s Interval) float64 { return s.Run.Latency["acquire"].P99 }, varianceLimit, false},
		{"memory of paddock serve", "MB", func(s Interval) float64 { return float64(s.Server) / megabyte }, growthLimit, false},
		{"memory of PostgreSQL, its buffers apart", "MB", func(s Interval) float64 { return float64(s.Backend) / megabyte }, growthLimit, false},
		{"tables and indexes", "MB", func(s Interval) float64 { return float64(s.Tables) / megabyte }, growthLimit, false},
	}
}

func median(all []Interval, of func(Interval) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Interval) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}
