package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// MaxCycleSteps bounds the steps of a Cycle.
const MaxCycleSteps = 16

// A Cycle is the circle of a Deadlock, as the event that removes its victim has it. It is one comparable value; the
// empty one has no steps. Its text is a JSON array of strings, five for each step: name, holder, what it waits for, at
// which lock that is, and "ahead" or nothing.
type Cycle string

// aheadMark is the last text of a step whose obstacle is ahead in the queue.
const aheadMark = "ahead"

// stepTexts is the number of texts of a step.
const stepTexts = 5

// CycleOf returns the Cycle with the steps, empty if there are more than MaxCycleSteps.
func CycleOf(steps []DeadlockStep) Cycle {
	if len(steps) == 0 || len(steps) > MaxCycleSteps {
		return ""
	}
	var texts []string
	for _, s := range steps {
		mark := ""
		if s.Ahead {
			mark = aheadMark
		}
		texts = append(texts, s.Name, s.Holder, s.WaitsFor, s.At, mark)
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return "" // strings are always valid
	}
	return Cycle(text)
}

// Steps returns the steps, from the victim on; nil if there are none, or if the text is not one of CycleOf.
func (c Cycle) Steps() []DeadlockStep {
	var texts []string
	if c == "" || json.Unmarshal([]byte(c), &texts) != nil || len(texts)%stepTexts != 0 {
		return nil
	}
	steps := make([]DeadlockStep, 0, len(texts)/stepTexts)
	for ; len(texts) > 0; texts = texts[stepTexts:] {
		steps = append(steps, DeadlockStep{
			Name: texts[0], Holder: texts[1], WaitsFor: texts[2], At: texts[3], Ahead: texts[4] == aheadMark,
		})
	}
	return steps
}

// A DeadlockStep is one waiting call of a Deadlock or of a WaitChain, and what it waits for.
type DeadlockStep struct {
	Name     string // the lock that it waits for
	Holder   string // of the call
	WaitsFor string // the holder of the lease, or of the waiting call, that is in the way
	At       string // the lock that this lease or call is of, if that is above or below Name in a tree; otherwise empty
	Ahead    bool   // in the way is a waiting call that is ahead in the queue, not a lease
}

// Where says where At is, seen from Name: "above it" or "below it". It is empty if At is empty or hidden.
func (s DeadlockStep) Where() string {
	switch {
	case s.At == "":
		return ""
	case strings.HasPrefix(s.At, s.Name+":"):
		return "below it"
	case strings.HasPrefix(s.Name, s.At+":"):
		return "above it"
	}
	return ""
}

// Obstacle says what is in the way, such as `"h" holds it` or `"h" holds repo:src, below it`.
func (s DeadlockStep) Obstacle() string {
	at := s.At
	if where := s.Where(); where != "" {
		at += ", " + where
	}
	who := strconv.Quote(s.WaitsFor)
	switch {
	case s.Ahead && at != "":
		return who + " waits for " + at + ", and is ahead"
	case s.Ahead:
		return who + " is ahead in its queue"
	}
	return who + " holds " + cmp.Or(at, "it")
}

// textOf describes the circle.
func textOf(cycle []DeadlockStep) string {
	var steps []string
	for _, s := range cycle {
		steps = append(steps, fmt.Sprintf("%s waits for %s, and %s", strconv.Quote(s.Holder), s.Name, s.Obstacle()))
	}
	return strings.Join(steps, "; ")
}
