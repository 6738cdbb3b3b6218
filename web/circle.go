package web

import (
	"fmt"
	"math"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A circle is the circle of a deadlock as the page shows it: a ring of numbered calls with arrows, and a list that says
// the same in words.
type circle struct {
	Steps []circleStep
}

// A circleStep is one call of the circle, with its place in the ring.
type circleStep struct {
	lock.DeadlockStep
	Number int
	URL    string     // of the lock's page; empty if it is this one, or hidden
	There  *namedLock // its At; nil: none
	X, Y   string     // of the node
	Arrow  string     // the path to the next node
	Head   string     // the points of its head
}

// Past reports whether the step is told in the past tense.
func (circleStep) Past() bool { return true }

// The ring, in the units of its drawing.
const (
	ringCenter = 60.0
	ringRadius = 44.0
	nodeRadius = 11.0
	headLength = 8.0
)

// circleOf returns the circle of an event, nil if it has none.
func circleOf(c lock.Cycle, here location) *circle {
	steps := c.Steps()
	if steps == nil {
		return nil
	}
	drawn := &circle{}
	// What a node covers of the ring, to either side of its center, as an angle.
	covered := 2 * math.Asin((nodeRadius+1)/2/ringRadius)
	head := headLength / ringRadius
	for i, s := range steps {
		at, next := angleOf(i, len(steps)), angleOf(i+1, len(steps))
		step := circleStep{DeadlockStep: s, Number: i + 1, There: there(s, here.First())}
		if lock.CheckName(s.Name) == nil && s.Name != here.Lock {
			step.URL = location{filter: here.First(), Lock: s.Name}.URL()
		}
		step.X, step.Y = coordinates(at, ringRadius)
		step.Arrow = arc(at+covered, next-covered-head)
		step.Head = triangle(next-covered, head)
		drawn.Steps = append(drawn.Steps, step)
	}
	return drawn
}

// angleOf returns where the node i of n is, clockwise from the top. The node n is the first one, a turn later.
func angleOf(i, n int) float64 { return 2 * math.Pi * float64(i) / float64(n) }

func coordinates(angle, radius float64) (x, y string) {
	return fmt.Sprintf("%.1f", ringCenter+radius*math.Sin(angle)), fmt.Sprintf("%.1f", ringCenter-radius*math.Cos(angle))
}

// arc returns the path along the ring from one angle to another, clockwise.
func arc(from, to float64) string {
	x, y := coordinates(from, ringRadius)
	endX, endY := coordinates(to, ringRadius)
	large := 0
	if to-from > math.Pi {
		large = 1
	}
	return fmt.Sprintf("M%s %sA%g %g 0 %d 1 %s %s", x, y, ringRadius, ringRadius, large, endX, endY)
}

// triangle returns the points of an arrow's head that ends at the angle.
func triangle(tip, length float64) string {
	var points []string
	for _, p := range [...]struct{ angle, radius float64 }{
		{tip, ringRadius}, {tip - length, ringRadius - headLength/2}, {tip - length, ringRadius + headLength/2},
	} {
		x, y := coordinates(p.angle, p.radius)
		points = append(points, x+","+y)
	}
	return strings.Join(points, " ")
}
