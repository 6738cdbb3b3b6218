package verify

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// writeTable writes the calls of the violation, one a line, with the faults between
// them, and then the events.
func (v Violation) writeTable(out io.Writer, faults []Fault) {
	if len(v.Calls) > 0 {
		v.writeCalls(out, faults)
	}
	if len(v.Events) > 0 {
		fmt.Fprintf(out, "    the lock's events there:\n")
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
	fmt.Fprintf(table, "\tsent\tanswered\tclient\tvia\tasked\tanswer\n")
	from, to := calls[0].Sent, calls[0].Answered
	for _, c := range calls {
		to = max(to, c.Answered)
	}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return f.At < from || f.At > to })
	for _, c := range calls {
		for len(faults) > 0 && faults[0].At <= c.Sent {
			faults = writeFault(table, faults)
		}
		fmt.Fprintf(table, "\t%s\t%s\t%d\t%s\t%s\t%s\n", sinceStart(c.Sent), sinceStart(c.Answered), c.Client, c.Via, c.requestText(), c.responseText())
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

// sinceStart shows how long sinceStart the beginning something was.
func sinceStart(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

// shortID shows as much of a lease_id as tells it from others.
func shortID(id lock.LeaseID) string { return hex.EncodeToString(id[:4]) }

// requestText says what a call asks for, without secrets.
func (c Call) requestText() string {
	switch a := c.Request.(type) {
	case lock.Acquire:
		text := fmt.Sprintf("acquire %s by %q as %s", cmp.Or(a.Mode, lock.Exclusive), a.Holder, shortID(a.LeaseID))
		if a.Wait > 0 {
			text += fmt.Sprintf(", waiting %v", a.Wait)
		}
		return text + fmt.Sprintf(", ttl %v", a.TTL)
	case lock.Renew:
		return "renew " + shortID(a.LeaseID)
	case lock.Release:
		return "release " + shortID(a.LeaseID)
	case lock.Revoke:
		if a.SkipGrace {
			return fmt.Sprintf("revoke token %d at once", a.Token)
		}
		return fmt.Sprintf("revoke token %d", a.Token)
	case lock.Watch:
		return fmt.Sprintf("watch from version %s, waiting %v", a.Seen, a.Wait)
	case lock.Verify:
		return fmt.Sprintf("verify token %d", a.Token)
	case lock.FencedWrite:
		text := fmt.Sprintf("write %s under token %d", a.Key, a.Token)
		if a.IfVersion != nil {
			text += fmt.Sprintf(" if at version %d", *a.IfVersion)
		}
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", c.Verb, c.Name))
}

// responseText says what a call was answered, without secrets.
func (c Call) responseText() string {
	if c.Err != nil {
		return c.errorText()
	}
	switch g := c.Response.(type) {
	case lock.Grant:
		replay := ""
		if g.Replayed {
			replay = " again"
		}
		return fmt.Sprintf("token %d%s, slot %d, %s to %s", g.Token, replay, g.Slot, clock(g.AcquiredAt), clock(g.ExpiresAt))
	case lock.Lock:
		text := fmt.Sprintf("%s at %s, revision %d, token %d", g.State, clock(g.AsOf), g.Revision, g.Token)
		for _, l := range g.Leases {
			text += fmt.Sprintf(", %q in slot %d with %d until %s", l.Holder, l.Slot, l.Token, clock(l.ExpiresAt))
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
