package main

import "testing"

func TestGCIsTunedUnlessTheEnvironmentDoes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"": ballastSize, "GOGC": 0, "GOMEMLIMIT": 0, "GOMAXPROCS": ballastSize} {
		if got := ballastFor(func(asked string) (string, bool) { return "100", asked == name }); got != want {
			t.Errorf("with %q set %d bytes are reserved, want %d", name, got, want)
		}
	}
}
