package when

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Day is what the unit d means. It ignores that a day with a change of the clocks is shorter or longer.
const Day = 24 * time.Hour

// wellFormedDuration matches a duration: whole days first, then what time.ParseDuration reads.
var wellFormedDuration = regexp.MustCompile(`^([+-]?)(?:([0-9]+)d)?((?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))*)$`)

// Duration reads a duration as time.ParseDuration does, but it may begin with whole days, as in 7d or 1d12h.
func Duration(text string) (time.Duration, error) {
	const howTo = "give numbers with units, such as 100ms, 90s, 1h30m, 7d or 1d12h"
	parts := wellFormedDuration.FindStringSubmatch(text)
	switch {
	case text == "0", text == "+0", text == "-0":
		return 0, nil
	case parts == nil && strings.Contains(text, "d"):
		return 0, fmt.Errorf("%q is not a duration; %s: days are whole numbers and come first", text, howTo)
	case parts == nil || parts[2] == "" && parts[3] == "":
		return 0, fmt.Errorf("%q is not a duration; %s", text, howTo)
	}
	const maxDays = int64(1<<63-1) / int64(Day)
	tooLong := fmt.Errorf("%q is too long for a duration; give less than %dd", text, maxDays)
	var days int64
	if parts[2] != "" {
		var err error
		if days, err = strconv.ParseInt(parts[2], 10, 64); err != nil || days >= maxDays {
			return 0, tooLong
		}
	}
	var rest time.Duration
	if parts[3] != "" {
		var err error
		if rest, err = time.ParseDuration(parts[3]); err != nil {
			return 0, tooLong
		}
	}
	sum := time.Duration(days)*Day + rest
	switch {
	case sum < 0:
		return 0, tooLong
	case parts[1] == "-":
		return -sum, nil
	}
	return sum, nil
}
