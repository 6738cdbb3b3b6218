package web

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// maxRowLeases is how many leases of a lock the list shows. The lock's page has all.
const maxRowLeases = 3

// A row is a lock in the list.
type row struct {
	Name    string
	State   lock.State
	Token   lock.Token // the newest granted; zero if there was none
	Sharing sharing
	Leases  []lease
	More    int // how many leases there are beside
	Waiters int
	URL     string // of the lock's page
}

func rowsOf(locks []lock.Lock, here location, to reader) []row {
	rows := make([]row, 0, len(locks))
	for _, l := range locks {
		page := here
		page.Lock = l.Name
		leases := leasesOf(l, here, to)
		slices.SortStableFunc(leases, func(a, b lease) int { return cmp.Compare(b.holderRank(here.Holder), a.holderRank(here.Holder)) })
		n := min(len(leases), maxRowLeases)
		rows = append(rows, row{
			Name: l.Name, State: l.State, Token: l.Token, Sharing: sharingOf(l), Leases: leases[:n],
			More: len(leases) - n, Waiters: l.Waiters, URL: page.URL(),
		})
	}
	return rows
}

// holderRank is 1 if the lease is of the holder that was asked for, 0 if not: what was
// looked for must not be left out.
func (l lease) holderRank(holder string) int {
	if holder != "" && l.Holder == holder {
		return 1
	}
	return 0
}

// Lines returns how many rows of the table the lock takes.
func (r row) Lines() int {
	n := max(len(r.Leases), 1)
	if r.More > 0 {
		n++
	}
	return n
}

// A sharing says in words how many have a lock, and in which mode.
type sharing struct {
	Mode string // empty if nobody has
	Of   string // how many do; empty for the one who has it alone
}

func sharingOf(l lock.Lock) sharing {
	if len(l.Leases) == 0 {
		return sharing{}
	}
	s := sharing{Mode: l.Leases[0].Mode.String()}
	switch n := len(l.Leases); l.Leases[0].Mode {
	case lock.Shared:
		s.Of = countOf(n, "holder", "holders") + ", one token"
	case lock.Permit:
		s.Of = fmt.Sprintf("%d of %d out", n, l.Capacity)
	}
	return s
}

// countOf returns the number with the word that goes with it.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
