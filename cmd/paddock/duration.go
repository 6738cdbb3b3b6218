package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// day is what the unit d means. It ignores that a day with a change of the clocks is shorter or longer.
const day = 24 * time.Hour

// wellFormedDuration matches a duration: whole days first, then what time.ParseDuration reads.
var wellFormedDuration = regexp.MustCompile(`^([+-]?)(?:([0-9]+)d)?((?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))*)$`)

// parseDuration reads a duration as time.ParseDuration does, but it may begin with whole days, as in 7d or 1d12h.
func parseDuration(text string) (time.Duration, error) {
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
	const maxDays = int64(1<<63-1) / int64(day)
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
	sum := time.Duration(days)*day + rest
	switch {
	case sum < 0:
		return 0, tooLong
	case parts[1] == "-":
		return -sum, nil
	}
	return sum, nil
}

// A durationMapper reads the durations of flags and of their variables.
type durationMapper struct{}

// Decode reads a duration.
func (durationMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// checkDurations returns a usage error if a flag that is given has a duration that it must not have.
func checkDurations(path []*kong.Path) error {
	for _, p := range path {
		if p.Flag == nil || reflect.Indirect(p.Flag.Target).Kind() == reflect.Invalid {
			continue
		}
		if wrong := wrongDuration(p.Flag, reflect.Indirect(p.Flag.Target)); wrong != "" {
			return usagef("--%s %s", p.Flag.Name, wrong)
		}
	}
	return nil
}

// wrongDuration returns what is wrong with the value of a flag if it is a negative duration, or zero where that would mean
// that the flag is not given: a script that computes a duration must not get a freeze without an end.
func wrongDuration(flag *kong.Flag, value reflect.Value) string {
	d, is := value.Interface().(time.Duration)
	switch without := flag.Tag.Get("unset"); {
	case is && d < 0:
		return fmt.Sprintf("is %v; give 0s or more", d)
	case is && d == 0 && without != "" && flag.Target.Kind() != reflect.Pointer:
		return "is 0s; give more, or leave it out for the default: " + without
	}
	return ""
}

// PlaceHolder returns what help shows as the value of a flag.
func (durationMapper) PlaceHolder(*kong.Flag) string { return "DURATION" }
