package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock/lock"
)

// Bounds of a picture: more operations than that, no browser shows well.
const (
	maxDrawn    = 1000
	drawTimeout = 5 * time.Second
)

// A visualization is the operations of one lock to be drawn.
type visualization struct {
	linearizability
	faults []Fault
}

// visualization chooses the operations to be drawn: the fewest that violate the rules; else
// those of the first lock of which something is violated; else those of the lock with
// the most that can be shown.
func (x *examination) visualization(r Report) *visualization {
	p := &visualization{faults: x.Faults}
	for _, c := range r.Checks {
		if len(c.counterexamples) > 0 {
			p.linearizability = c.counterexamples[0]
			return p
		}
	}
	violated := ""
	for _, c := range r.Checks {
		for _, v := range c.Violations {
			violated = cmp.Or(violated, v.Lock)
		}
	}
	for _, t := range x.locks {
		if violated != "" && t.name != violated || len(t.calls) > maxDrawn {
			continue
		}
		if ops := t.operations(); len(ops) > len(p.ops) && len(ops) <= maxDrawn {
			p.linearizability = linearizability{initial: state{lock: lock.Record{Name: t.name}}, ops: ops}
		}
	}
	return p
}

// WriteHTML writes porcupine's picture of the operations of the lock that is
// violated, as a page for a browser; if none is, of one whose order was found.
func (r Report) WriteHTML(w io.Writer) error {
	p := r.visualization
	if p == nil || len(p.ops) == 0 {
		return fmt.Errorf("there is nothing to draw: no lock has between 1 and %d operations and their events", maxDrawn)
	}
	m := model(p.initial)
	found, info := porcupine.CheckOperationsVerbose(m, p.lanes(), drawTimeout)
	if found == porcupine.Unknown {
		return errors.Join(porcupine.Visualize(m, info, w), fmt.Errorf("the picture is not whole: no order was found in %v", drawTimeout))
	}
	info.AddAnnotations(p.annotations())
	return porcupine.Visualize(m, info, w)
}

// lanes returns the operations as porcupine takes them, each in a lane in which it
// overlaps with no other.
func (p *visualization) lanes() []porcupine.Operation {
	all := make([]porcupine.Operation, len(p.ops))
	for i, o := range p.ops {
		all[i] = porcupine.Operation{Input: o, Call: int64(o.from), Return: int64(max(o.from, o.to))}
	}
	var until []int64
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for i := range all {
		lane := slices.IndexFunc(until, func(end int64) bool { return end < all[i].Call })
		if lane < 0 {
			lane, until = len(until), append(until, 0)
		}
		all[i].ClientId, until[lane] = lane, all[i].Return
	}
	return all
}

// annotations returns the faults that came while the operations lasted.
func (p *visualization) annotations() []porcupine.Annotation {
	from, to := p.ops[0].from, p.ops[0].to
	for _, o := range p.ops {
		from, to = min(from, o.from), max(to, o.to)
	}
	var all []porcupine.Annotation
	for _, f := range p.faults {
		if f.At >= from && f.At <= to {
			all = append(all, porcupine.Annotation{Tag: "faults", Start: int64(f.At), Description: f.Description, BackgroundColor: "#f3b6b6"})
		}
	}
	return all
}
