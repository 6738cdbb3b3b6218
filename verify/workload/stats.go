package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// Done is the outcome, in Stats, of successful calls.
const Done = "done"

// Stats sum up the calls of a run.
type Stats struct {
	// Calls counts calls by verb, then by Done or the error code.
	Calls map[verify.Verb]map[string]int
	// Retries counts the calls that were sent again because the outcome of the earlier one was
	// unknown.
	Retries int
	Took    time.Duration
	// Subscribers sums up what subscribers received.
	Subscribers SubscriberStats
}

// Total returns the number of calls.
func (s Stats) Total() int {
	n := 0
	for _, outcomes := range s.Calls {
		for _, times := range outcomes {
			n += times
		}
	}
	return n
}

// Rate returns the number of calls per second.
func (s Stats) Rate() float64 {
	if s.Took <= 0 {
		return 0
	}
	return float64(s.Total()) / s.Took.Seconds()
}

// WriteText writes one line for each verb, with the commonest outcomes first.
func (s Stats) WriteText(w io.Writer) error {
	for _, verb := range slices.Sorted(maps.Keys(s.Calls)) {
		outcomes := s.Calls[verb]
		names := slices.SortedFunc(maps.Keys(outcomes), func(a, b string) int {
			return cmp.Or(outcomes[b]-outcomes[a], strings.Compare(a, b))
		})
		total, parts := 0, make([]string, len(names))
		for i, name := range names {
			total += outcomes[name]
			parts[i] = fmt.Sprintf("%d %s", outcomes[name], name)
		}
		if _, err := fmt.Fprintf(w, "%-12s %7d  %s\n", verb, total, strings.Join(parts, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// count counts the outcome of a call.
func (s *Stats) count(verb verify.Verb, err error) { s.note(verb, outcome(err), 1) }

// note adds calls with an outcome.
func (s *Stats) note(verb verify.Verb, outcome string, times int) {
	if s.Calls == nil {
		s.Calls = map[verify.Verb]map[string]int{}
	}
	if s.Calls[verb] == nil {
		s.Calls[verb] = map[string]int{}
	}
	s.Calls[verb][outcome] += times
}

func outcome(err error) string {
	var e *lock.Error
	switch {
	case err == nil:
		return Done
	case errors.As(err, &e):
		return string(e.Code)
	}
	return "unknown error"
}

// add adds the calls of other.
func (s *Stats) add(other Stats) {
	for verb, outcomes := range other.Calls {
		for name, times := range outcomes {
			s.note(verb, name, times)
		}
	}
	s.Retries += other.Retries
}
