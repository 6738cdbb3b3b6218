package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestGCIsTunedUnlessTheEnvironmentDoes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"": ballastSize, "GOGC": 0, "GOMEMLIMIT": 0, "GOMAXPROCS": ballastSize} {
		if got := ballastFor(func(asked string) (string, bool) { return "100", asked == name }); got != want {
			t.Errorf("with %q set %d bytes are reserved, want %d", name, got, want)
		}
	}
}

// TestMemoryIsGivenBackAfterACrowd has come or left, once, and not after small changes.
func TestMemoryIsGivenBackAfterACrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, now := time.Now(), 0
		var collected []time.Duration
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			collectAfterCrowds(stop, func() int { return now }, func() { collected = append(collected, time.Since(began)) })
		}()
		for _, n := range []int{50, crowdChange - 1, 20_000, 20_000, 20_001 - crowdChange, 50, 50, 49 + crowdChange, 50} {
			now = n
			time.Sleep(crowdPause)
			synctest.Wait()
		}
		close(stop)
		<-ended
		if want := []time.Duration{3 * crowdPause, 6 * crowdPause}; !slices.Equal(collected, want) {
			t.Errorf("collected after %v, want %v", collected, want)
		}
	})
}
