package web

import (
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// maxSetNames bounds the other locks of a set that a lock's page shows at once. The others are behind a summary.
const maxSetNames = 3

// A setLock is one lock of a set, with the URL of its page.
type setLock struct{ Name, URL string }

// otherLocks are the locks of a set besides the one that the page shows.
type otherLocks struct {
	Key    string // of the lease or the waiter
	First  []setLock
	Rest   []setLock
	Hidden string // names the locks that the reader's key does not cover; empty: none
}

// otherLocksOf returns the locks of the set besides the one at the location, or nil if set is.
func otherLocksOf(set []string, here location, key string) *otherLocks {
	if set == nil {
		return nil
	}
	names, hidden := withoutHidden(set, here.Lock)
	o := &otherLocks{Key: key}
	if hidden > 0 {
		o.Hidden = hiddenLocks(hidden)
	}
	for _, name := range names {
		// Cursors are long, so the links lead back to the first page of the list.
		page := location{filter: here.First(), Lock: name}
		o.Rest = append(o.Rest, setLock{Name: name, URL: page.URL()})
	}
	n := min(len(o.Rest), maxSetNames)
	o.First, o.Rest = o.Rest[:n], o.Rest[n:]
	return o
}

// fewLocksOf is otherLocksOf with a number in place of the names that would be behind a summary.
func fewLocksOf(set []string, here location) *otherLocks {
	o := otherLocksOf(set, here, "")
	if o != nil && len(o.Rest) > 0 {
		o.Rest, o.Hidden = nil, fmt.Sprintf("%d more", len(set)-1-len(o.First))
	}
	return o
}

// withoutHidden returns the other names of the set that the reader may see, and how many the service hides.
func withoutHidden(set []string, name string) (names []string, hidden int) {
	for _, one := range set {
		switch {
		case lock.CheckName(one) != nil:
			hidden++
		case one != name:
			names = append(names, one)
		}
	}
	return names, hidden
}

func hiddenLocks(n int) string {
	if n == 1 {
		return "(not covered)"
	}
	return fmt.Sprintf("%d locks (not covered)", n)
}

// A setEnd is what a revocation ends besides the leases that it selects: the other leases of their sets.
type setEnd struct {
	Several bool // leases are selected
	Size    int  // of the set, if it is that of one lease
	Names   []string
	Hidden  string // names the locks that the reader's key does not cover; empty: none
}

// setEndOf returns what the revocation of the leases of the lock ends besides them, or nil if none is of a set.
func setEndOf(name string, leases []lock.LeaseInfo) *setEnd {
	var end *setEnd
	for _, l := range leases {
		if l.Set == nil {
			continue
		}
		if end == nil {
			end = &setEnd{Several: len(leases) > 1, Size: len(l.Set)}
		}
		names, hidden := withoutHidden(l.Set, name)
		end.Names = append(end.Names, names...)
		switch {
		case hidden == 0:
		case end.Several: // the sets may have hidden locks in common
			end.Hidden = "others (not covered)"
		default:
			end.Hidden = hiddenLocks(hidden)
		}
	}
	if end != nil {
		slices.Sort(end.Names)
		end.Names = slices.Compact(end.Names)
	}
	return end
}
