package soak

import (
	"cmp"
	"slices"
)

// A Trend is how a figure in the last third of a soak stands to that in the middle third, in
// the median: 1 is flat.
type Trend struct {
	Figure string
	Unit   string
	Middle float64
	Last   float64
	Flat   bool
}

// What may change: what grows by more than a tenth would have doubled by the end of a day. A
// latency varies more than that by itself.
const (
	growthLimit   = 1.10
	varianceLimit = 1.25
)

// Trends tells of all figures. There are none of fewer than six stretches.
func Trends(all []Interval) []Trend {
	if len(all) < 6 {
		return nil
	}
	var verdicts []Trend
	for _, f := range figures() {
		third := len(all) / 3
		v := Trend{Figure: f.name, Unit: f.unit, Middle: median(all[third:2*third], f.of), Last: median(all[len(all)-third:], f.of)}
		v.Flat = v.Last <= v.Middle*f.limit
		if f.higherIsBetter {
			v.Flat = v.Last*f.limit >= v.Middle
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// A figure is what is to stay as it is.
type figure struct {
	name, unit     string
	of             func(Interval) float64
	limit          float64 // how many times as much may be in the end
	higherIsBetter bool    // it is the other way round: so many times less may be
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
