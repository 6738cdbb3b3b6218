package lock

import "encoding/json"

// MaxCycleSteps bounds the steps of a Cycle.
const MaxCycleSteps = 16

// A Cycle is the circle of a Deadlock, as the event that removes its victim has it. It is one comparable value; the
// empty one has no steps. Its text is a JSON array of strings, four for each step: name, holder, what it waits for, and
// "ahead" or nothing.
type Cycle string

// aheadMark is the last text of a step whose obstacle is ahead in the queue.
const aheadMark = "ahead"

// stepTexts is the number of texts of a step.
const stepTexts = 4

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
		texts = append(texts, s.Name, s.Holder, s.WaitsFor, mark)
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
		steps = append(steps, DeadlockStep{Name: texts[0], Holder: texts[1], WaitsFor: texts[2], Ahead: texts[3] == aheadMark})
	}
	return steps
}
