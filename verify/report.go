package verify

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A Report is the result of checking a History.
type Report struct {
	Operations int // number of calls
	Events     int
	Locks      int
	Faults     int // number of faults
	Checks     []Check

	faults        []Fault
	visualization *visualization
}

// A Check is the result of one check.
type Check struct {
	Name       string
	Examined   int // number of cases
	Violations []Violation
	Skipped    string // why the check did not run; empty if it did
	// Missed counts the events that subscribers never received, each event once for each subscriber.
	// Events excused by a gap are not counted.
	Missed int

	counterexamples []linearizability // operations that cannot be ordered, one set for each such violation
}

// A Violation is one case in which a History breaks a rule.
type Violation struct {
	Lock    string // name of the lock, or key of the fenced value
	Message string // one sentence
	Calls   []Call // that show it
	Events  []lock.Event
}

// violated records a violation with the calls and events that show it, and the neighbours of those
// events.
func (c *Check) violated(t *lockHistory, what string, calls []*Call, events ...*lock.Event) {
	v := Violation{Lock: t.name, Message: what, Events: around(t.events, events)}
	seen := map[int]bool{}
	for _, call := range calls {
		if call != nil && call.whole != nil {
			call = call.whole
		}
		if call != nil && !seen[call.ID] {
			seen[call.ID] = true
			v.Calls = append(v.Calls, *call)
		}
	}
	c.Violations = append(c.Violations, v)
}

// shownAround is how many events are shown before and after each event of a violation.
const shownAround = 2

func around(all []lock.Event, these []*lock.Event) []lock.Event {
	var near []lock.Event
	for i := range all {
		for _, e := range these {
			if e != nil && e.Revision-all[i].Revision <= shownAround && all[i].Revision-e.Revision <= shownAround {
				near = append(near, all[i])
				break
			}
		}
	}
	return near
}

// OK reports whether there is no violation.
func (r Report) OK() bool { return r.violations() == 0 }

func (r Report) violations() int {
	n := 0
	for _, c := range r.Checks {
		n += len(c.Violations)
	}
	return n
}

// shownViolations is how many violations of one check are shown in full.
const shownViolations = 3

// WriteText writes a line with the verdict, a line for each check, and each violation with
// calls and events that show it. It writes no secrets.
func (r Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	verdict := "OK: no violations"
	if !r.OK() {
		verdict = fmt.Sprintf("VIOLATED: %s", plural(r.violations(), "violation"))
	}
	fmt.Fprintf(out, "%s. %s on %s, %s, %s.\n\n", verdict,
		plural(r.Operations, "call"), plural(r.Locks, "lock"), plural(r.Events, "event"), plural(r.Faults, "fault"))
	for _, c := range r.Checks {
		fmt.Fprintf(out, "  %-8s  %-60s  %s\n", c.state(), c.Name, c.count())
	}
	for _, c := range r.Checks {
		c.write(out, r.faults)
	}
	return out.Flush()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (c Check) state() string {
	switch {
	case len(c.Violations) > 0:
		return "VIOLATED"
	case c.Examined == 0:
		return "-"
	}
	return "ok"
}

func (c Check) count() string {
	switch {
	case c.Skipped != "":
		return "not checked: " + c.Skipped
	case c.Examined == 0:
		return "not checked: no such case"
	case len(c.Violations) > 0:
		return plural(c.Examined, "case") + ", " + plural(len(c.Violations), "violation")
	}
	return plural(c.Examined, "case")
}

func (c Check) write(out io.Writer, faults []Fault) {
	for i, v := range c.Violations {
		if i == shownViolations {
			fmt.Fprintf(out, "\n%d more violations are not shown.\n", len(c.Violations)-i)
			return
		}
		fmt.Fprintf(out, "\n%s\n  %s: %s\n", c.Name, v.Lock, v.Message)
		v.writeTable(out, faults)
	}
}

// writeTable writes the calls of the violation, one per line, with the faults between them, and
// then the events.
func (v Violation) writeTable(out io.Writer, faults []Fault) {
	if len(v.Calls) > 0 {
		v.writeCalls(out, faults)
	}
	if len(v.Events) > 0 {
		fmt.Fprintf(out, "    events of the lock:\n")
		table := tabwriter.NewWriter(out, 0, 1, 2, ' ', 0)
		for _, e := range v.Events {
			fmt.Fprintf(table, "\t%s\t%s\n", clock(e.At), eventText(e))
		}
		_ = table.Flush() // out keeps its error
	}
}

func (v Violation) writeCalls(out io.Writer, faults []Fault) {
	calls := slices.Clone(v.Calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Sent, b.Sent) })
	table := tabwriter.NewWriter(out, 0, 1, 2, ' ', 0)
	fmt.Fprintf(table, "\tsent\tanswered\tclient\tvia\trequest\tanswer\n")
	from, to := calls[0].Sent, calls[0].Answered
	for _, c := range calls {
		to = max(to, c.Answered)
	}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return f.At < from || f.At > to })
	for _, c := range calls {
		for len(faults) > 0 && faults[0].At <= c.Sent {
			faults = writeFault(table, faults)
		}
		fmt.Fprintf(table, "\t%s\t%s\t%d\t%s\t%s\t%s\n", sinceStart(c.Sent), sinceStart(c.Answered), c.Client, c.Via,
			c.requestText(), c.responseText())
	}
	for len(faults) > 0 {
		faults = writeFault(table, faults)
	}
	_ = table.Flush() // out keeps its error
}

func writeFault(out io.Writer, faults []Fault) []Fault {
	fmt.Fprintf(out, "\t%s\t\t\t\tFAULT: %s\t\n", sinceStart(faults[0].At), faults[0].Description)
	return faults[1:]
}

// sinceStart formats a time since the recording began, in seconds.
func sinceStart(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

// shortID returns the part of a lease_id that is shown: enough to distinguish it, too little to use it.
func shortID(id lock.LeaseID) string { return hex.EncodeToString(id[:4]) }

// requestText describes the request without secrets.
func (c Call) requestText() string {
	switch a := c.Request.(type) {
	case lock.Acquire:
		text := fmt.Sprintf("acquire %s by %q as %s", askedText(a), a.Holder, shortID(a.LeaseID))
		if a.Wait > 0 {
			text += fmt.Sprintf(", waiting %v", a.Wait)
		}
		return text + taskText(a.Task) + fmt.Sprintf(", ttl %v", a.TTL)
	case lock.Renew:
		return "renew " + shortID(a.LeaseID) + ofSet(a.Locks)
	case lock.Release:
		return "release " + shortID(a.LeaseID) + ofSet(a.Locks)
	case lock.Revoke:
		if a.SkipGrace {
			return fmt.Sprintf("revoke token %d, skipping its grace", a.Token)
		}
		return fmt.Sprintf("revoke token %d", a.Token)
	case paddock.Watch:
		return fmt.Sprintf("watch version %s, waiting %v", a.Seen, a.Wait)
	case lock.Verify:
		if a.Slot != nil {
			return fmt.Sprintf("verify token %d in slot %d", a.Token, *a.Slot)
		}
		return fmt.Sprintf("verify token %d", a.Token)
	case lock.FencedWrite:
		text := fmt.Sprintf("write %s under token %d", a.Key, a.Token)
		if a.IfVersion != nil {
			text += fmt.Sprintf(" if the version is %d", *a.IfVersion)
		}
		if a.OperationID != "" {
			text += fmt.Sprintf(" for the operation %s", a.OperationID)
		}
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", c.Verb, c.Name))
}

// askedText returns the modes that were asked for, and the locks of a set.
func askedText(a lock.Acquire) string {
	if len(a.Locks) == 1 {
		return cmp.Or(a.Locks[0].Mode, lock.Exclusive).String()
	}
	texts := make([]string, len(a.Locks))
	for i, m := range a.Locks {
		texts[i] = fmt.Sprintf("%s %s", cmp.Or(m.Mode, lock.Exclusive), m.Name)
	}
	return strings.Join(texts, " and ")
}

func ofSet(names []string) string {
	if len(names) == 1 {
		return ""
	}
	return " of " + strings.Join(names, " and ")
}

// responseText describes the answer without secrets.
func (c Call) responseText() string {
	if c.Err != nil {
		return c.errorText()
	}
	switch g := c.Response.(type) {
	case lock.Grant:
		replay := ""
		if g.Replayed {
			replay = " (replayed)"
		}
		if len(g.Leases) > 1 {
			replay += fmt.Sprintf(", %d leases", len(g.Leases))
		}
		return fmt.Sprintf("token %d%s, %s, %s to %s", g.Token, replay, g.Slots.Text(g.Slot), clock(g.AcquiredAt),
			clock(g.ExpiresAt))
	case lock.Lock:
		text := fmt.Sprintf("%s at %s, revision %d, token %d", g.State, clock(g.AsOf), g.Revision, g.Token)
		for _, l := range g.Leases {
			text += fmt.Sprintf(", %q in %s with token %d until %s", l.Holder, l.Slots.Text(l.Slot), l.Token,
				clock(l.ExpiresAt))
		}
		return text
	case lock.Verification:
		return fmt.Sprintf("%s at %s, newest %d", g.Status, clock(g.CheckedAt), g.Newest)
	case lock.FencedValue:
		return fmt.Sprintf("version %d under token %d at %s", g.Version, g.Token, clock(g.WrittenAt))
	}
	return "done"
}

func (c Call) errorText() string {
	var e *lock.Error
	if !errors.As(c.Err, &e) {
		return "no answer: " + c.Err.Error()
	}
	text := string(e.Code)
	if e.Holder != "" {
		text += fmt.Sprintf(" by %q", e.Holder)
	}
	if e.Newest != 0 {
		text += fmt.Sprintf(", newest token %d", e.Newest)
	}
	if e.Ended != 0 {
		text += fmt.Sprintf(", %s at %s", e.Ended, clock(e.EndedAt))
	}
	return text
}

// Bounds of a visualization: browsers do not display more operations well.
const (
	maxDrawn    = 1000
	drawTimeout = 5 * time.Second
)

// A visualization is the operations of one lock to be drawn.
type visualization struct {
	linearizability
	faults []Fault
}

// visualization chooses the operations to draw: some that cannot be ordered; else those of
// the first lock with a violation; else those of the lock with the most operations that can be drawn.
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

// WriteHTML writes porcupine's visualization of the lock with a violation as an HTML page; without
// violations, of a lock whose operations are linearizable.
func (r Report) WriteHTML(w io.Writer) error {
	p := r.visualization
	if p == nil || len(p.ops) == 0 {
		return fmt.Errorf("nothing to draw: no lock has 1 to %d operations with events", maxDrawn)
	}
	m := model(p.initial)
	found, info := porcupine.CheckOperationsVerbose(m, p.lanes(), drawTimeout)
	if found == porcupine.Unknown {
		return errors.Join(porcupine.Visualize(m, info, w),
			fmt.Errorf("the visualization is incomplete: no order was found within %v", drawTimeout))
	}
	info.AddAnnotations(p.annotations())
	return porcupine.Visualize(m, info, w)
}

// lanes returns the operations for porcupine, placed so that no two in one lane overlap.
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

// annotations returns the faults that were injected during the operations.
func (p *visualization) annotations() []porcupine.Annotation {
	from, to := p.ops[0].from, p.ops[0].to
	for _, o := range p.ops {
		from, to = min(from, o.from), max(to, o.to)
	}
	var all []porcupine.Annotation
	for _, f := range p.faults {
		if f.At >= from && f.At <= to {
			all = append(all, porcupine.Annotation{Tag: "faults", Start: int64(f.At), Description: f.Description,
				BackgroundColor: "#f3b6b6"})
		}
	}
	return all
}
