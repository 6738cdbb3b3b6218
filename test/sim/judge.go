package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A hold is what a worker has been told of its lock.
type hold interface {
	Token() lock.Token // zero if there are no tokens
	Err() error        // nil while the lock is held, for all that the clock tells
}

// A judge sees all at once, as nobody can in a real system, and says what went wrong.
type judge struct {
	*world

	mu    sync.Mutex
	found []Violation
	held  int // how often somebody began to have the lock
	going map[*attempt]hold
	knew  map[seat][]Span // from when till when holders were told that they had leases
}

// violated notes what went wrong with what a did, and who else is concerned.
func (j *judge) violated(k Kind, a, other *attempt, format string, args ...any) {
	v := Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...), who: []string{a.name}, from: a.granted}
	if other != nil && other != a {
		v.who, v.from = append(v.who, other.name), min(v.from, other.granted)
	}
	j.note(a.name, "%s  <-- %s", v.Text, k)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, v)
}

// wrong notes what went wrong with nobody in particular.
func (j *judge) wrong(k Kind, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found = append(j.found, Violation{Kind: k, At: j.now(), Text: fmt.Sprintf(format, args...)})
}

// begins notes that an attempt has the lock, for all it knows, and looks who else has.
func (j *judge) begins(a *attempt, h hold) {
	a.granted = j.now()
	alone := true
	for i, other := range j.believers(a.lock()) {
		if h.Err() == nil && (other.kind.mode != a.kind.mode || a.kind.mode == lock.Exclusive || a.kind.mode == lock.Permit && i+1 >= permits) {
			j.violated(TwoHolders, a, other, "has the lock%s while %s does", shown(h.Token()), other.name)
			alone = false
		}
	}
	if alone {
		j.note(a.name, "has the lock%s", shown(h.Token()))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.going[a] = h
	j.held++
}

// believers returns who would find to have the lock, looking now, in their order.
func (j *judge) believers(name string) []*attempt {
	j.mu.Lock()
	going := maps.Clone(j.going)
	j.mu.Unlock()
	maps.DeleteFunc(going, func(a *attempt, h hold) bool { return a.lock() != name || h.Err() != nil })
	return slices.SortedFunc(maps.Keys(going), func(a, b *attempt) int { return int(a.granted - b.granted) })
}

func (j *judge) ends(a *attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.going, a)
}

// A seat is a lease as its events tell of it.
type seat struct {
	holder string
	token  lock.Token
	slot   int
}

// knows notes that a holder was told of its lease then, and just now that this is over.
func (j *judge) knows(s seat, from time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.knew[s] = append(j.knew[s], Span{From: from, To: j.now()})
}

// rightful is whether the service has a lease of the attempt.
func (j *judge) rightful(a *attempt) bool {
	return slices.ContainsFunc(j.look(a.lock()).Leases, func(h lock.LeaseInfo) bool { return h.Holder == a.holder })
}

func shown(t lock.Token) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", t)
}
