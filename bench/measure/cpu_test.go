package measure

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line   string
		parent int
		cpu    time.Duration
	}{
		"a plain name":            {"42 (postgres) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 3 4 20 0 1 0 99", 7, 370 * time.Millisecond},
		"a name of any character": {"42 (a) S 1 (b c) R 9 42 42 0 -1 4194304 1 2 3 4 1 0 0 0 20 0 1 0 99", 9, 10 * time.Millisecond},
	} {
		got, err := parse([]byte(c.line))
		if err != nil || got != (stat{c.parent, c.cpu}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for _, line := range []string{"", "42 (x) S 1", "42 (x) S one 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "42 (x) S 1 2 3 4 5 6 7 8 9 10 a b c d 15"} {
		if got, err := parse([]byte(line)); err == nil {
			t.Errorf("%q was read as %+v", line, got)
		}
	}
}

func TestTreesIncludeChildren(t *testing.T) {
	t.Parallel()
	before, err := Trees([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	busy := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	if out, err := busy.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after, err := Trees([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	took := busy.ProcessState.UserTime() + busy.ProcessState.SystemTime()
	if grown := after[os.Getpid()] - before[os.Getpid()]; grown < took-2*tick {
		t.Errorf("the tree used %v more, but a child of it used %v", grown, took)
	}
}
