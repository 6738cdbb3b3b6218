package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A holdStatus is what a worker has been told of its lock.
type holdStatus interface {
	Token() lock.Token // zero if there are no tokens
	Err() error        // nil while the lock is held, for all that the clock tells
}

// A oracle sees all at once, as nobody can in a real system, and says what went wrong.
type oracle struct {
	*world

	mu          sync.Mutex
	found       []Violation
	diedHolding int
	held        int // how often somebody began to have the lock
	current     map[*attempt]holdStatus
	informed    map[leaseKey][]Interval // from when till when holders were told that they had leases
}

// report notes what went wrong with what a did, and who else is concerned.
func (j *oracle) report(k Kind, a, other *attempt, format string, args ...any) {
	v := Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...), who: []string{a.name}, from: a.granted}
	if other != nil && other != a {
		v.who, v.from = append(v.who, other.name), min(v.from, other.granted)
	}
	j.note(a.name, "%s  <-- %s", v.Text, k)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, v)
}

// reportGlobal notes what went reportGlobal with nobody in particular.
func (j *oracle) reportGlobal(k Kind, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...)})
}

// holdBegins notes that an attempt has the lock, for all it knows, and looks who else has.
func (j *oracle) holdBegins(a *attempt, h holdStatus) {
	a.granted = j.now()
	alone := true
	for i, other := range j.currentHolders(a.lock()) {
		if h.Err() == nil && (other.scenario.mode != a.scenario.mode || a.scenario.mode == lock.Exclusive || a.scenario.mode == lock.Permit && i+1 >= permits) {
			j.report(TwoHolders, a, other, "has the lock%s while %s does", tokenText(h.Token()), other.name)
			alone = false
		}
	}
	if alone {
		j.note(a.name, "has the lock%s", tokenText(h.Token()))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.current[a] = h
	j.held++
}

// currentHolders returns who would find to have the lock, looking now, in their order.
func (j *oracle) currentHolders(name string) []*attempt {
	j.mu.Lock()
	going := maps.Clone(j.current)
	j.mu.Unlock()
	maps.DeleteFunc(going, func(a *attempt, h holdStatus) bool { return a.lock() != name || h.Err() != nil })
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

// A leaseKey is a lease as its events tell of it.
type leaseKey struct {
	holder string
	token  lock.Token
	slot   int
}

// recordInformed notes that a holder was told of its lease then, and just now that this is over.
func (j *oracle) recordInformed(s leaseKey, from time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.informed[s] = append(j.informed[s], Interval{From: from, To: j.now()})
}

// isHolder is whether the service has a lease of the attempt.
func (j *oracle) isHolder(a *attempt) bool {
	return slices.ContainsFunc(j.lockNow(a.lock()).Leases, func(h lock.LeaseInfo) bool { return h.Holder == a.holder })
}

func tokenText(t lock.Token) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", t)
}
