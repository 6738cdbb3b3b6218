// Package await waits in tests for what happens soon, on a machine however slow.
package await

import (
	"context"
	"testing"
	"time"
)

// patience is how long Until waits for what normally takes milliseconds.
const patience = 2 * time.Minute

// Until asks again until the condition holds. The test ends if it does not in two minutes; what says what was waited for.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
