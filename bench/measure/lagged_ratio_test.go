package measure

import "testing"

func TestLaggedRatioCountsBetweenReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late, prompt []int64
		want         float64
		ok           bool
	}{
		"two per operation, reported twice": {[]int64{0, 0, 20, 20, 20, 60, 60}, []int64{5, 9, 10, 15, 20, 30, 40}, 2, true},
		"reported immediately":              {[]int64{10, 20, 30}, []int64{5, 10, 15}, 2, true},
		"one report":                        {[]int64{0, 0, 7, 7}, []int64{1, 2, 3, 4}, 0, false},
		"none":                              {[]int64{3, 3, 3}, []int64{1, 2, 3}, 0, false},
	} {
		var r LaggedRatio
		for i := range c.late {
			r.Add(c.late[i], c.prompt[i])
		}
		if got, ok := r.Ratio(); got != c.want || ok != c.ok {
			t.Errorf("%s: got %v, %v", name, got, ok)
		}
	}
}
