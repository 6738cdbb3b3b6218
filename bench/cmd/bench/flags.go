package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/bench/paddock"
)

// The settings are flags of whatever measures.
type settings struct {
	paddock      string
	paddockFlags string
	events       int
	raw          bool
	dir          string
	keep         bool
	results      string
	tiny         bool // no past is long
}

func (s *settings) register(set *flag.FlagSet) {
	set.StringVar(&s.paddock, "paddock", "", "the binary of paddock to measure (default: one that is built)")
	set.StringVar(&s.paddockFlags, "paddock-flags", "", "flags for paddock serve, with spaces between")
	set.IntVar(&s.events, "events", 1_000_000, "how many events paddock-events has to prune")
	set.BoolVar(&s.raw, "raw", false, "do not analyse the tables that were filled for growth")
	set.StringVar(&s.dir, "dir", "", "folder for what the servers keep: on a real disk (default: a temporary one)")
	set.BoolVar(&s.keep, "keep", false, "keep that folder")
	set.StringVar(&s.results, "results", "", "the file that gets the results (default: none)")
}

// prepare makes the folder for the servers, which PostgreSQL's user must be able to enter, and
// builds what is to be measured.
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

// cleanUp removes the folder.
func (s *settings) cleanUp(out streams) error {
	if s.keep {
		fmt.Fprintln(out.log, "what the servers kept is in", s.dir)
		return nil
	}
	return os.RemoveAll(s.dir)
}

// list splits at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
