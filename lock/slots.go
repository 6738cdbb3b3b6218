package lock

import (
	"slices"
	"strconv"
	"strings"
)

// Slots are the slots of a lease of several permits, in order, such as "1 2 5". The first one is the lease's Slot. They
// are one comparable value. That of a lease with one slot is empty: its Slot says all.
type Slots string

// SlotsOf returns the Slots with the numbers, which are in order; empty for less than two.
func SlotsOf(numbers []int) Slots {
	if len(numbers) < 2 {
		return ""
	}
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return Slots(strings.Join(texts, " "))
}

// Count returns how many slots the lease has, and so how many permits: one at least.
func (s Slots) Count() int { return strings.Count(string(s), " ") + 1 }

// All returns the slots of a lease, in order. first is its Slot.
func (s Slots) All(first int) []int {
	if s == "" {
		return []int{first}
	}
	all := make([]int, 0, s.Count())
	for text := range strings.SplitSeq(string(s), " ") {
		if n, err := strconv.Atoi(text); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Include reports whether the slot is one of the lease's. first is its Slot.
func (s Slots) Include(first, slot int) bool {
	return slot == first || s != "" && slices.Contains(s.All(first), slot)
}

// Text names the slots of a lease for people. first is its Slot.
func (s Slots) Text(first int) string {
	if s == "" {
		return "slot " + strconv.Itoa(first)
	}
	return "slots " + string(s)
}

// IsValid reports whether s is what SlotsOf returns, for slots from first on up to MaxHolders.
func (s Slots) IsValid(first int) bool {
	if s == "" {
		return true
	}
	all := s.All(first)
	return SlotsOf(all) == s && all[0] == first && first > 0 && all[len(all)-1] <= MaxHolders &&
		slices.IsSorted(all) && len(slices.Compact(all)) == s.Count()
}
