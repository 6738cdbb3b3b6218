package rivals_test

import (
	"testing"

	"github.com/paddock-lock/paddock/bench/rivals"
)

func TestNamesAndTitlesAreUnique(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range rivals.Systems() {
		for _, called := range []string{s.Name(), s.Title()} {
			if called == "" || seen[called] {
				t.Errorf("the name or title %q is not unique", called)
			}
			seen[called] = true
		}
	}
}

func TestTheTestProcessIsNotAFront(t *testing.T) {
	t.Parallel()
	if is, err := rivals.Front(); is || err != nil {
		t.Errorf("got %v, %v", is, err)
	}
}
