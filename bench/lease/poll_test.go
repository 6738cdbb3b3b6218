package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

func TestPoll(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		wait  bool
		fails []error // of consecutive attempts
		tries int
		want  error
	}{
		"free":               {wait: true, tries: 1},
		"held, without wait": {fails: []error{system.ErrHeld}, tries: 1, want: system.ErrHeld},
		"held for a while":   {wait: true, fails: []error{system.ErrHeld, system.ErrHeld}, tries: 3},
		"broken":             {wait: true, fails: []error{system.ErrHeld, broken}, tries: 2, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				_, err := lease.Poll(t.Context(), c.wait, time.Millisecond, func() (int, error) {
					tries++
					if tries <= len(c.fails) {
						return 0, c.fails[tries-1]
					}
					return tries, nil
				})
				if !errors.Is(err, c.want) || tries != c.tries {
					t.Errorf("%v after %d attempts", err, tries)
				}
			})
		})
	}
}
