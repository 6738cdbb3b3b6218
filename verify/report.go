package verify

import (
	"bufio"
	"fmt"
	"io"

	"github.com/paddock-lock/paddock/lock"
)

// A Report is what came of checking a History.
type Report struct {
	Operations int // how many calls there were
	Events     int
	Locks      int
	Faults     int // how many were noted
	Checks     []Check

	faults        []Fault
	visualization *visualization
}

// A Check is one thing that a History must prove.
type Check struct {
	Name       string
	Examined   int // how many cases there were
	Violations []Violation
	Skipped    string // why there was nothing to examine, if it could not be
	// Missed is how many events subscribers were never told, each event once for each of
	// them; those that a gap accounts for are not counted.
	Missed int

	counterexamples []linearizability // of the violations that have one
}

// A Violation is a case in which a History breaks a rule.
type Violation struct {
	Lock    string // its name, or the key of what is written
	Message string // a sentence
	Calls   []Call // as few as show it
	Events  []lock.Event
}

// violated notes a violation, with the calls and events that show it. Around the
// events those are shown that came before and after.
func (c *Check) violated(t *lockHistory, what string, calls []*Call, events ...*lock.Event) {
	v := Violation{Lock: t.name, Message: what, Events: around(t.events, events)}
	seen := map[int]bool{}
	for _, call := range calls {
		if call != nil && !seen[call.ID] {
			seen[call.ID] = true
			v.Calls = append(v.Calls, *call)
		}
	}
	c.Violations = append(c.Violations, v)
}

// shownAround is how many events are shown before and after each that counts.
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

// OK is whether nothing is violated.
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

// WriteText writes a line with the verdict, a line for each check, and each
// violation with the shortest history that shows it. No secret is in it.
func (r Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	verdict := "OK: nothing is violated"
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
		return "not examined: " + c.Skipped
	case c.Examined == 0:
		return "not examined: there was no case of it"
	case len(c.Violations) > 0:
		return plural(c.Examined, "case") + ", " + plural(len(c.Violations), "violation")
	}
	return plural(c.Examined, "case")
}

func (c Check) write(out io.Writer, faults []Fault) {
	for i, v := range c.Violations {
		if i == shownViolations {
			fmt.Fprintf(out, "\n%d more are not shown.\n", len(c.Violations)-i)
			return
		}
		fmt.Fprintf(out, "\n%s\n  %s: %s\n", c.Name, v.Lock, v.Message)
		v.writeTable(out, faults)
	}
}
