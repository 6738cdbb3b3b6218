package soak

import (
	"testing"

	"github.com/paddock-lock/paddock/bench/result"
)

func stretches(n int, of func(i int) Interval) []Interval {
	var all []Interval
	for i := range n {
		all = append(all, of(i))
	}
	return all
}

func TestGrowthIsNotFlat(t *testing.T) {
	t.Parallel()
	base := func(int) Interval {
		return Interval{
			Server: 40 << 20, Backend: 90 << 20, Tables: 300 << 20,
			Run: result.Run{PerSecond: 10_000, Latency: map[string]result.Quantile{"acquire": {P50: 2000, P99: 9000}}},
		}
	}
	for name, c := range map[string]struct {
		change func(i int, s *Interval)
		want   string // the figure that is not flat
	}{
		"nothing changes":           {func(int, *Interval) {}, ""},
		"it warms up":               {func(i int, s *Interval) { s.Tables = min(int64(i), 3) * 100 << 20 }, ""},
		"memory leaks":              {func(i int, s *Interval) { s.Server += int64(i) << 20 }, "memory of paddock serve"},
		"tables grow":               {func(i int, s *Interval) { s.Tables += int64(i) * 10 << 20 }, "tables and indexes"},
		"it becomes slower":         {func(i int, s *Interval) { s.Run.PerSecond -= float64(i) * 200 }, "rate"},
		"it becomes faster":         {func(i int, s *Interval) { s.Run.PerSecond += float64(i) * 200 }, ""},
		"one interval is slow":      {func(i int, s *Interval) { s.Run.PerSecond /= float64(1 + i/29) }, ""},
		"PostgreSQL's memory leaks": {func(i int, s *Interval) { s.Backend += int64(i) * 4 << 20 }, "memory of PostgreSQL, its buffers apart"},
	} {
		for _, v := range Trends(stretches(30, func(i int) Interval { s := base(i); c.change(i, &s); return s })) {
			if v.Flat == (v.Figure == c.want) {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
	if v := Trends(stretches(5, base)); v != nil {
		t.Errorf("trends of five intervals: %+v", v)
	}
}
