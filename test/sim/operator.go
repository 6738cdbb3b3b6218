package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// mostPermits is the greatest capacity that the operator gives to the gates.
const mostPermits = permits + 1

// An Order is what the operator declares from an instant on, and takes back later: a freeze, or the capacity of the gates.
type Order struct {
	From, To time.Duration
	Scope    lock.Scope
	For      time.Duration // of a freeze, on the database's clock; zero: until it is taken back
	Capacity int           // zero: a freeze
}

// orders draws the orders of a run. They are all taken back while there are still faults.
func (p Plan) orders(rnd *rand.Rand) (all []Order) {
	scopes := []lock.Scope{ledger, ledger + ":", page, gates, report, state}
	for range rnd.IntN(2) * 6 {
		o := Order{From: p.instant(rnd), Scope: oneOf(rnd, scopes...)}
		o.To = min(o.From+randomDuration(rnd, 3*p.TTL), p.Quiet*19/20)
		switch rnd.IntN(3) {
		case 0:
			o.Scope, o.Capacity = gates, 1+rnd.IntN(mostPermits)
		case 1:
			o.For = randomDuration(rnd, 2*p.TTL)
		}
		all = append(all, o)
	}
	return all
}

// An operator freezes locks and changes the capacity of the gates as the plan says, and revokes leases that are suspect. Its
// calls are answered at once.
type operator struct {
	*world
	locks paddock.Service

	mu       sync.Mutex
	freezes  []frozen
	capacity []capacity // in the order of their instants
}

// A frozen is a freeze from its answer until it ends, on the database's clock.
type frozen struct {
	scope       lock.Scope
	from, until time.Time // until is zero while it lasts
}

// A capacity is that of the gates from an instant on, on the database's clock.
type capacity struct {
	from    time.Time
	permits int
}

func newOperator(w *world) *operator {
	o := &operator{world: w, locks: w.database.Replica(0)}
	if w.variant.allGuards {
		o.setCapacity(permits)
	}
	return o
}

// begins carries out the order.
func (o *operator) begins(order Order) {
	if order.Capacity > 0 {
		o.note("operator", "gives the gates %d permits", order.Capacity)
		o.setCapacity(order.Capacity)
		return
	}
	o.note("operator", "freezes %s", order.Scope)
	f, err := o.locks.Freeze(context.Background(), lock.FreezeRequest{Scope: order.Scope, Reason: "r", For: order.For})
	if err != nil {
		panic(err) // the order is valid
	}
	o.thawed(order.Scope, f.FrozenAt)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.freezes = append(o.freezes, frozen{order.Scope, f.FrozenAt, f.Until})
}

// ends takes the order back, or a later one in its place.
func (o *operator) ends(order Order) {
	if order.Capacity > 0 {
		o.note("operator", "gives the gates %d permits", permits)
		o.setCapacity(permits)
		return
	}
	o.note("operator", "thaws %s", order.Scope)
	o.thawed(order.Scope, o.clock(0))
	if err := o.locks.Thaw(context.Background(), lock.ThawRequest{Scope: order.Scope}); err != nil {
		panic(err)
	}
}

// thawed notes that no freeze of the scope lasts longer.
func (o *operator) thawed(s lock.Scope, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.freezes {
		if f := &o.freezes[i]; f.scope == s && (f.until.IsZero() || at.Before(f.until)) {
			f.until = at
		}
	}
}

func (o *operator) setCapacity(n int) {
	r, err := o.locks.SetRule(context.Background(), lock.Rule{Scope: gates, Capacity: n})
	if err != nil {
		panic(err) // the rule is valid
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.capacity = append(o.capacity, capacity{r.SetAt, n})
}

// watch looks now and then, until the work of all workers is over.
func (o *operator) watch(over <-chan struct{}) {
	for every := time.Tick(o.plan.TTL + 7*time.Nanosecond); ; {
		select {
		case <-over:
			return
		case <-every:
		}
		o.look()
	}
}

// look looks at the work of a suspect lease, and revokes the lease.
func (o *operator) look() {
	l := o.lockNow(state)
	if l.State != lock.Suspect {
		return
	}
	o.note("operator", "revokes the suspect lease of %s", l.Leases[0].Holder)
	if _, err := o.locks.Revoke(context.Background(), lock.Revoke{Name: state, Token: l.Leases[0].Token, Reason: "r"}); err != nil {
		panic(err) // nobody else is granted the lock
	}
}

// verify checks that nothing was granted in a freeze, and no permit beyond the capacity of its time. What happened at the
// instant of an order may have come before it.
func (o *operator) verify(name string, events []lock.Event) {
	out := map[string]int{} // permits by lease
	for _, e := range events {
		key := fmt.Sprint(e.Slot, e.Token)
		switch e.Kind {
		case lock.Released, lock.Expired, lock.Revoked, lock.Withdrawn:
			delete(out, key)
		case lock.Granted:
			out[key] = e.Slots.Count()
			i := slices.IndexFunc(o.freezes, func(f frozen) bool {
				return f.stops(name) && e.At.After(f.from) && (f.until.IsZero() || e.At.Before(f.until))
			})
			if i >= 0 {
				o.oracle.reportGlobal(AgainstOrder, "%s was granted %s at %v, while %s was frozen", e.Holder, name, e.At, o.freezes[i].scope)
			}
			sum := 0
			for _, n := range out {
				sum += n
			}
			if most := o.capacityAt(e.At); name == gates && sum > most {
				o.oracle.reportGlobal(AgainstOrder, "%s was granted %s at %v, which made %d of %d permits", e.Holder, name, e.At, sum, most)
			}
		}
	}
}

// stops reports whether the freeze stops grants of the lock.
func (f frozen) stops(name string) bool {
	return f.scope.Covers(name) || strings.HasPrefix(string(f.scope), name+":")
}

// capacityAt returns the capacity of the gates at that instant, the greater one if it changed then.
func (o *operator) capacityAt(at time.Time) (n int) {
	for _, c := range o.capacity {
		switch {
		case c.from.Before(at):
			n = c.permits
		case c.from.Equal(at):
			n = max(n, c.permits)
		}
	}
	return n
}
