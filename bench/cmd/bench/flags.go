package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/bench/paddock"
)

// settings are the flags of all commands that measure.
type settings struct {
	paddock      string
	paddockFlags string
	events       int
	dir          string
	results      string
	tiny         bool // few locks, events, streams and clients
}

func (s *settings) register(set *flag.FlagSet) {
	set.StringVar(&s.paddock, "paddock", "", "paddock binary to measure (default: build it)")
	set.StringVar(&s.paddockFlags, "paddock-flags", "", "flags for paddock serve, separated by spaces")
	set.IntVar(&s.events, "events", 1_000_000, "number of events that paddock-events has to prune")
	set.StringVar(&s.dir, "dir", "", "directory for the servers' data, on a real disk (default: a temporary directory)")
	set.StringVar(&s.results, "results", "", "file to write the results to (default: none)")
}

// prepare creates the directory for the servers, which PostgreSQL's user must be able to enter, and
// builds paddock if no binary is given.
func (s *settings) prepare(ctx context.Context) error {
	var err error
	if s.dir, err = os.MkdirTemp(s.dir, "paddock-bench-*"); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if s.paddock == "" {
		s.paddock, err = paddock.Build(ctx, s.dir)
		return err
	}
	s.paddock, err = filepath.Abs(s.paddock)
	return err
}

// size returns one of the two sizes.
func (s *settings) size(full, tiny int) int {
	if s.tiny {
		return tiny
	}
	return full
}

// list splits text at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
