package main

import (
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock/internal/when"
)

// A durationMapper reads the durations of flags and of their variables.
type durationMapper struct{}

// Decode reads a duration.
func (durationMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := when.Duration(text)
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
