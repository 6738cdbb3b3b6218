package soak

import (
	"cmp"
	"slices"
)

// A Verdict is how a figure in the last third of a soak stands to that in the middle third, in
// the median: 1 is flat.
type Verdict struct {
	Figure string
	Unit   string
	Middle float64
	Last   float64
	Flat   bool
}

// What may change: what grows by more than a tenth would have doubled by the end of a day. A
// latency varies more than that by itself.
const (
	mayGrow = 1.10
	mayVary = 1.25
)

// Verdicts tells of all figures. There are none of fewer than six stretches.
func Verdicts(all []Stretch) []Verdict {
	if len(all) < 6 {
		return nil
	}
	var verdicts []Verdict
	for _, f := range figures() {
		third := len(all) / 3
		v := Verdict{Figure: f.name, Unit: f.unit, Middle: median(all[third:2*third], f.of), Last: median(all[len(all)-third:], f.of)}
		v.Flat = v.Last <= v.Middle*f.most
		if f.less {
			v.Flat = v.Last*f.most >= v.Middle
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// A figure is what is to stay as it is.
type figure struct {
	name, unit string
	of         func(Stretch) float64
	most       float64 // how many times as much may be in the end
	less       bool    // it is the other way round: so many times less may be
}

func figures() []figure {
	const megabyte = 1 << 20
	return []figure{
		{"rate", "pairs a second", func(s Stretch) float64 { return s.Run.PerSecond }, mayGrow, true},
		{"acquire, p50", "µs", func(s Stretch) float64 { return s.Run.Latency["acquire"].P50 }, mayVary, false},
		{"acquire, p99", "µs", func(s Stretch) float64 { return s.Run.Latency["acquire"].P99 }, mayVary, false},
		{"memory of paddock serve", "MB", func(s Stretch) float64 { return float64(s.Server) / megabyte }, mayGrow, false},
		{"memory of PostgreSQL, its buffers apart", "MB", func(s Stretch) float64 { return float64(s.Backend) / megabyte }, mayGrow, false},
		{"tables and indexes", "MB", func(s Stretch) float64 { return float64(s.Tables) / megabyte }, mayGrow, false},
	}
}

func median(all []Stretch, of func(Stretch) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Stretch) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}
