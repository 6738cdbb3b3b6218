package workload

import (
	"math"
	"testing"
)

func TestJain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served []int
		want   float64
	}{
		"even":     {[]int{7, 7, 7, 7}, 1},
		"one only": {[]int{0, 0, 9, 0}, 0.25},
		"half":     {[]int{3, 3, 0, 0}, 0.5},
		"none":     {[]int{0, 0}, 0},
	} {
		if got := jain(c.served); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
