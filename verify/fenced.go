package verify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A resource is everything that was written and read under one key.
type resource struct {
	lock   *lockHistory // stands for the key in violations
	writes []*Call
	reads  []*Call
	lost   int // number of writes with an unknown outcome

	operations  map[string]*fencedOperation
	repetitions map[*Call]bool // see findRepetitions
}

// fenced checks fenced writes, key by key.
func (x *examination) fenced(c *Check) {
	all := map[string]*resource{}
	of := func(key string) *resource {
		if all[key] == nil {
			all[key] = &resource{lock: &lockHistory{name: key}, operations: map[string]*fencedOperation{}}
		}
		return all[key]
	}
	for i := range x.Calls {
		call := &x.Calls[i]
		switch w := call.Request.(type) {
		case lock.FencedWrite:
			of(w.Key).addWrite(call)
		case string:
			if call.Verb == ReadFenced {
				r := of(w)
				r.reads = append(r.reads, call)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r := all[key]
		c.Examined += len(r.writes)
		r.findRepetitions(c)
		r.checkVersions(c)
		r.checkRealTimeOrder(c)
		r.checkReads(c)
	}
	for _, t := range x.locks {
		t.checkStaleWrites(c)
	}
}

func (r *resource) addWrite(call *Call) {
	o := &fencedOperation{}
	if id := operationID(call); id != "" {
		if r.operations[id] == nil {
			r.operations[id] = o
		}
		o = r.operations[id]
	}
	switch call.Outcome() {
	case Done:
		r.writes = append(r.writes, call)
		o.calls = append(o.calls, call)
	case Unknown:
		r.lost++
		o.lost = true
	}
}

func fencedValue(c *Call) lock.FencedValue { f, _ := c.Response.(lock.FencedValue); return f }

// checkVersions checks that each write has its own version unless it was a retry, that no version is
// missing, and that tokens do not decrease.
func (r *resource) checkVersions(c *Check) {
	writes := slices.DeleteFunc(slices.Clone(r.writes), func(w *Call) bool { return r.repetitions[w] })
	slices.SortStableFunc(writes,
		func(a, b *Call) int { return cmp.Compare(fencedValue(a).Version, fencedValue(b).Version) })
	missing := int64(0)
	for i := 1; i < len(writes); i++ {
		a, b := fencedValue(writes[i-1]), fencedValue(writes[i])
		switch both := writes[i-1 : i+1]; {
		case a.Version == b.Version && !repeats(writes[i-1], writes[i]):
			c.violated(r.lock, fmt.Sprintf("Two writes have the same version %d.", a.Version), both)
		case b.Token < a.Token:
			c.violated(r.lock, fmt.Sprintf("Version %d was written under token %d, after version %d under token %d.",
				b.Version, b.Token, a.Version, a.Token), both)
		}
		missing += max(b.Version-a.Version-1, 0)
	}
	if missing > int64(r.lost) {
		c.violated(r.lock,
			fmt.Sprintf("%d versions belong to no known write, but only %d writes have an unknown outcome.", missing,
				r.lost), ends(writes))
	}
}

func ends(calls []*Call) []*Call { return []*Call{calls[0], calls[len(calls)-1]} }

// repeats reports whether the two calls are one write, sent twice.
func repeats(a, b *Call) bool {
	w, v := a.Request.(lock.FencedWrite), b.Request.(lock.FencedWrite)
	return (w.IfVersion != nil || v.IfVersion != nil || w.OperationID != "" || v.OperationID != "") && w.Lock == v.Lock && w.Token == v.Token &&
		sameJSON(w.Value, v.Value)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(x, y)
}

// checkRealTimeOrder checks that no write has a version that existed before it was sent, and that no
// read returns an older version than one answered before it was sent.
func (r *resource) checkRealTimeOrder(c *Check) {
	calls := slices.Concat(r.writes, r.reads)
	byAnswer := slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b *Call) int { return cmp.Compare(a.Sent, b.Sent) })
	slices.SortStableFunc(byAnswer, func(a, b *Call) int { return cmp.Compare(a.Answered, b.Answered) })
	var newest *Call
	for _, call := range calls {
		for len(byAnswer) > 0 && byAnswer[0].Answered < call.Sent {
			if newest == nil || fencedValue(byAnswer[0]).Version > fencedValue(newest).Version {
				newest = byAnswer[0]
			}
			byAnswer = byAnswer[1:]
		}
		if newest != nil {
			r.checkAfter(newest, call, c)
		}
	}
}

// checkAfter compares a call with the newest version that was known before it was sent.
func (r *resource) checkAfter(newest, call *Call, c *Check) {
	before, now := fencedValue(newest), fencedValue(call)
	switch {
	case call.Verb == ReadFenced && errors.Is(call.Err, lock.ErrNotFound) && before.Version > 0:
		c.violated(r.lock, fmt.Sprintf("Version %d existed, but a later read found nothing.", before.Version),
			[]*Call{newest, call})
	case call.Outcome() != Done:
	case now.Version < before.Version:
		c.violated(r.lock, fmt.Sprintf("Version %d existed, but a later call was answered version %d.", before.Version,
			now.Version), []*Call{newest, call})
	case call.Verb == WriteFenced && now.Version == before.Version && !call.repeated() && !r.mayRepeat(call):
		c.violated(r.lock, fmt.Sprintf("Version %d existed, but a later write was answered the same version.",
			before.Version), []*Call{newest, call})
	}
}

// repeated reports whether a write may have been answered with a version that existed before.
func (c *Call) repeated() bool {
	w, ok := c.Request.(lock.FencedWrite)
	return ok && w.IfVersion != nil && fencedValue(c).Version == *w.IfVersion+1
}

// checkReads checks that each read, and each repetition of an operation, returned what was written.
func (r *resource) checkReads(c *Check) {
	by := map[int64]*Call{}
	for _, w := range r.writes {
		if r.repetitions[w] {
			continue
		}
		if o := by[fencedValue(w).Version]; o == nil || w.Sent < o.Sent {
			by[fencedValue(w).Version] = w
		}
	}
	for _, read := range slices.AppendSeq(slices.Clone(r.reads), maps.Keys(r.repetitions)) {
		if read.Outcome() != Done {
			continue
		}
		c.Examined++
		got := fencedValue(read)
		w := by[got.Version]
		switch {
		case w == nil && r.lost == 0:
			c.violated(r.lock, fmt.Sprintf("Version %d was read, but no call wrote it.", got.Version), []*Call{read})
		case w == nil:
		case fencedValue(w).Token != got.Token || !sameJSON(w.Request.(lock.FencedWrite).Value, got.Value):
			c.violated(r.lock, fmt.Sprintf("Version %d was read with another value or token than it was written with.",
				got.Version), []*Call{w, read})
		case w.Sent > read.Answered && r.lost == 0:
			c.violated(r.lock, fmt.Sprintf("Version %d was read before it was written.", got.Version),
				[]*Call{read, w})
		}
	}
}

// checkStaleWrites checks that no write succeeded under a token after a greater one was known to be
// granted.
func (t *lockHistory) checkStaleWrites(c *Check) {
	var known []*lease
	for _, l := range t.leases {
		if l.firstAnswer() != nil {
			known = append(known, l)
		}
	}
	answered := map[*lease]time.Duration{}
	for _, l := range known {
		answered[l] = l.firstAnswer().Answered
	}
	slices.SortStableFunc(known, func(a, b *lease) int { return cmp.Compare(answered[a], answered[b]) })
	newest, inSlot := (*lease)(nil), map[int]*lease{}
	for _, call := range t.calls { // ordered by Sent
		for len(known) > 0 && answered[known[0]] < call.Sent {
			l := known[0]
			if newest == nil || l.token > newest.token {
				newest = l
			}
			for _, slot := range l.slots.All(l.slot) {
				if o := inSlot[slot]; o == nil || l.token > o.token {
					inSlot[slot] = l
				}
			}
			known = known[1:]
		}
		w, ok := call.Request.(lock.FencedWrite)
		if !ok || call.Outcome() != Done {
			continue
		}
		c.Examined++
		greatest := newest
		if w.Slot != 0 {
			greatest = inSlot[w.Slot]
		}
		if greatest != nil && greatest.token > w.Token {
			c.violated(t, fmt.Sprintf("A write to %s succeeded under token %d after token %d was known to be granted.",
				w.Key, w.Token, greatest.token),
				[]*Call{greatest.firstAnswer(), call}, greatest.granted)
		}
	}
}
