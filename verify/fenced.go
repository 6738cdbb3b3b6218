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

// A resource is all that was written under one key, and read.
type resource struct {
	lock   *lockHistory // nobody's: for its name
	writes []*Call
	reads  []*Call
	lost   int // how many writes may have been done, and nobody knows
}

// fenced checks what was written under tokens, key by key.
func (x *examination) fenced(c *Check) {
	all := map[string]*resource{}
	of := func(key string) *resource {
		if all[key] == nil {
			all[key] = &resource{lock: &lockHistory{name: key, faults: x.Faults}}
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
		r.checkVersions(c)
		r.checkRealTimeOrder(c)
		r.checkReads(c)
	}
	for _, t := range x.locks {
		t.checkStaleWrites(c)
	}
}

func (r *resource) addWrite(call *Call) {
	switch call.Outcome() {
	case Done:
		r.writes = append(r.writes, call)
	case Unknown:
		r.lost++
	}
}

func fencedValue(c *Call) lock.FencedValue { f, _ := c.Response.(lock.FencedValue); return f }

// checkVersions checks that each write has its own version, but for one that was sent
// again; that none is missing; and that tokens do not fall.
func (r *resource) checkVersions(c *Check) {
	writes := slices.Clone(r.writes)
	slices.SortStableFunc(writes, func(a, b *Call) int { return cmp.Compare(fencedValue(a).Version, fencedValue(b).Version) })
	missing := int64(0)
	for i := 1; i < len(writes); i++ {
		a, b := fencedValue(writes[i-1]), fencedValue(writes[i])
		switch both := writes[i-1 : i+1]; {
		case a.Version == b.Version && !repeats(writes[i-1], writes[i]):
			c.violated(r.lock, fmt.Sprintf("Two writes were answered with version %d.", a.Version), both)
		case b.Token < a.Token:
			c.violated(r.lock, fmt.Sprintf("Version %d was written under token %d, after version %d under token %d.", b.Version, b.Token, a.Version, a.Token), both)
		}
		missing += max(b.Version-a.Version-1, 0)
	}
	if missing > int64(r.lost) {
		c.violated(r.lock, fmt.Sprintf("%d versions were written by nobody, and only %d writes were left without an answer.", missing, r.lost), ends(writes))
	}
}

func ends(calls []*Call) []*Call { return []*Call{calls[0], calls[len(calls)-1]} }

// repeats is whether the two are one write, sent twice.
func repeats(a, b *Call) bool {
	w, v := a.Request.(lock.FencedWrite), b.Request.(lock.FencedWrite)
	return (w.IfVersion != nil || v.IfVersion != nil) && w.Lock == v.Lock && w.Token == v.Token && sameJSON(w.Value, v.Value)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(x, y)
}

// checkRealTimeOrder checks that no write has a version that was there before it was sent, and
// that no read tells of less than was written, or read, before.
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

// checkAfter checks a call against the newest version that was known before it was sent.
func (r *resource) checkAfter(newest, call *Call, c *Check) {
	before, now := fencedValue(newest), fencedValue(call)
	switch {
	case call.Verb == ReadFenced && errors.Is(call.Err, lock.ErrNotFound) && before.Version > 0:
		c.violated(r.lock, fmt.Sprintf("Version %d was there, and nothing was found after that.", before.Version), []*Call{newest, call})
	case call.Outcome() != Done:
	case now.Version < before.Version:
		c.violated(r.lock, fmt.Sprintf("Version %d was there, and version %d was answered after that.", before.Version, now.Version), []*Call{newest, call})
	case call.Verb == WriteFenced && now.Version == before.Version && !call.repeated():
		c.violated(r.lock, fmt.Sprintf("Version %d was there, and was written again after that.", before.Version), []*Call{newest, call})
	}
}

// repeated is whether a write may have been answered with a version that was there.
func (c *Call) repeated() bool {
	w, ok := c.Request.(lock.FencedWrite)
	return ok && w.IfVersion != nil && fencedValue(c).Version == *w.IfVersion+1
}

// checkReads checks that what was read is what was written.
func (r *resource) checkReads(c *Check) {
	by := map[int64]*Call{}
	for _, w := range r.writes {
		if o := by[fencedValue(w).Version]; o == nil || w.Sent < o.Sent {
			by[fencedValue(w).Version] = w
		}
	}
	for _, read := range r.reads {
		if read.Outcome() != Done {
			continue
		}
		c.Examined++
		got := fencedValue(read)
		w := by[got.Version]
		switch {
		case w == nil && r.lost == 0:
			c.violated(r.lock, fmt.Sprintf("Version %d was read, and nobody wrote it.", got.Version), []*Call{read})
		case w == nil:
		case fencedValue(w).Token != got.Token || !sameJSON(w.Request.(lock.FencedWrite).Value, got.Value):
			c.violated(r.lock, fmt.Sprintf("Version %d was read, and it was not what had been written.", got.Version), []*Call{w, read})
		case w.Sent > read.Answered && r.lost == 0:
			c.violated(r.lock, fmt.Sprintf("Version %d was read before it was written.", got.Version), []*Call{read, w})
		}
	}
}

// checkStaleWrites checks that no write was done under a token when a greater one was known
// to be granted before it was sent.
func (t *lockHistory) checkStaleWrites(c *Check) {
	var told []*lease
	for _, l := range t.leases {
		if l.firstAnswer() != nil {
			told = append(told, l)
		}
	}
	answered := map[*lease]time.Duration{}
	for _, l := range told {
		answered[l] = l.firstAnswer().Answered
	}
	slices.SortStableFunc(told, func(a, b *lease) int { return cmp.Compare(answered[a], answered[b]) })
	newest, inSlot := (*lease)(nil), map[int]*lease{}
	for _, call := range t.calls { // in the order in which they were sent
		for len(told) > 0 && answered[told[0]] < call.Sent {
			l := told[0]
			if newest == nil || l.token > newest.token {
				newest = l
			}
			if o := inSlot[l.slot]; o == nil || l.token > o.token {
				inSlot[l.slot] = l
			}
			told = told[1:]
		}
		w, ok := call.Request.(lock.FencedWrite)
		if !ok || call.Outcome() != Done {
			continue
		}
		c.Examined++
		known := newest
		if w.Slot != 0 {
			known = inSlot[w.Slot]
		}
		if known != nil && known.token > w.Token {
			c.violated(t, fmt.Sprintf("A write to %s was done under token %d, when token %d was known to be granted.", w.Key, w.Token, known.token),
				[]*Call{known.firstAnswer(), call}, known.granted)
		}
	}
}
