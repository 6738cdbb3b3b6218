package cell_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
)

// A fixed is the Store of a cell in memory, whose groups do not move.
type fixed struct {
	paddock.Service
	placed *placement.Map
}

func (s fixed) Placement() *placement.Map                  { return s.placed }
func (s fixed) Leave(context.Context, placement.Row) error { return nil }
func (s fixed) Ready(context.Context) error                { return nil }
func (s fixed) Epoch() int64                               { return 1 }

// placed returns what each of n cells knows if no group was moved.
func placed(n int) (all []*placement.Map) {
	var cells []placement.Cell
	for i := range n {
		cells = append(cells, placement.Cell{Name: fmt.Sprintf("cell-%d", i), Position: i, Takes: true})
	}
	for i := range n {
		all = append(all, &placement.Map{Self: cells[i].Name, Cells: cells, Generation: 1})
	}
	return all
}

// routers returns two routers over n cells in memory.
func routers(n int) []paddock.Service {
	maps := placed(n)
	var names []string
	for _, m := range maps {
		names = append(names, m.Self)
	}
	a, b := cell.New(names...), cell.New(names...)
	for i, m := range maps {
		memory := memlock.NewCell(i)
		a.Set(m.Self, fixed{memory.Replica(1), m})
		b.Set(m.Self, fixed{memory.Replica(2), m})
	}
	return []paddock.Service{a, b}
}

// TestConformance uses two routers over the same three cells, in memory: each call goes to either one.
func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.RunInBubbles(t, func() []paddock.Service { return routers(3) })
}

// TestConformanceOfCalls is TestConformance in real time, in which calls may be cancelled in the middle.
func TestConformanceOfCalls(t *testing.T) {
	t.Parallel()
	locktest.Run(t, routers(3)...)
}
