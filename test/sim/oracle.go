package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A holdStatus is what a worker knows about its lock.
type holdStatus interface {
	Token() lock.Token // zero if there are no tokens
	Err() error        // nil while the lock is held, by the worker's clock
}

// An oracle sees the whole world at once, which is impossible in a real system, and reports violations.
type oracle struct {
	*world

	mu          sync.Mutex
	found       []Violation
	diedHolding int
	held        int // how often an attempt had the lock
	heldSets    int // how often it had other locks together with it
	current     map[*attempt]holdStatus
	informed    map[leaseKey][]Interval // when holders knew that they had leases
}

// report records a violation by a that also concerns other, which may be nil.
func (j *oracle) report(k Kind, a, other *attempt, format string, args ...any) {
	v := Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...), workers: []string{a.name}, from: a.granted}
	if other != nil && other != a {
		v.workers, v.from = append(v.workers, other.name), min(v.from, other.granted)
	}
	j.note(a.name, "%s  <-- %s", v.Text, k)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, v)
}

// reportGlobal records a violation that concerns no particular worker.
func (j *oracle) reportGlobal(k Kind, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...)})
}

// holdBegins records that the attempt learned of its lock, and reports other attempts that hold it in a conflicting
// mode.
func (j *oracle) holdBegins(a *attempt, h holdStatus) {
	a.granted = j.now()
	alone := true
	for _, name := range a.locks() {
		mode := a.modeOf(name)
		out := a.permitsOf(name)
		for _, other := range j.currentHolders(name) {
			out += other.permitsOf(name)
			if h.Err() == nil && (other.modeOf(other.covering(name)) != mode || mode == lock.Exclusive || mode == lock.Permit && out > mostPermits) {
				j.report(TwoHolders, a, other, "has the lock%s while %s does", tokenText(h.Token()), other.name)
				alone = false
			}
		}
	}
	if alone {
		j.note(a.name, "has the lock%s", tokenText(h.Token()))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.current[a] = h
	j.held++
	if len(a.locks()) > 1 {
		j.heldSets++
	}
}

// currentHolders returns the attempts that would find now that they have the lock, or one above or below it, in the
// order of their grants.
func (j *oracle) currentHolders(name string) []*attempt {
	j.mu.Lock()
	going := maps.Clone(j.current)
	j.mu.Unlock()
	maps.DeleteFunc(going, func(a *attempt, h holdStatus) bool { return a.covering(name) == "" || h.Err() != nil })
	return slices.SortedFunc(maps.Keys(going), func(a, b *attempt) int { return int(a.granted - b.granted) })
}

func (j *oracle) holdEnds(a *attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.current, a)
}

// dies records that the worker does not have the lock any more, if it had it when it died.
func (j *oracle) dies(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for a, h := range j.current {
		if a.name == name {
			if delete(j.current, a); h.Err() == nil {
				j.diedHolding++
			}
		}
	}
}

// A leaseKey identifies a lease in events.
type leaseKey struct {
	holder string
	token  lock.Token
	slot   int
}

// recordInformed records that a holder had its lease from that time on and was informed just now that it is over.
func (j *oracle) recordInformed(s leaseKey, from time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.informed[s] = append(j.informed[s], Interval{From: from, To: j.now()})
}

// isHolder reports whether the service has a lease of the attempt.
func (j *oracle) isHolder(a *attempt) bool {
	return slices.ContainsFunc(j.lockNow(a.lock()).Leases, func(h lock.LeaseInfo) bool { return h.Holder == a.holder })
}

func tokenText(t lock.Token) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", t)
}
