package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/paddock-lock/paddock/bench/campaign"
	"github.com/paddock-lock/paddock/bench/report"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

// A session collects the results of several parts.
type session struct {
	*settings
	streams
	file result.File
}

func newSession(ctx context.Context, s *settings, out streams) *session {
	return &session{settings: s, streams: out, file: result.File{Machine: result.ThisMachine(ctx)}}
}

// measurePart measures a part and prints its results.
func (m *session) measurePart(ctx context.Context, number int, p part, kinds workloadsFor) error {
	c := campaign.Campaign{
		Part: p.title, Rounds: p.rounds, Options: workload.Options{Warm: seconds(p.warmup), Measured: seconds(p.seconds)},
		Dir: filepath.Join(m.dir, fmt.Sprint("part-", number+1)), Done: m.done, Missing: m.missing,
	}
	var err error
	if c.Systems, c.Workloads, err = m.choose(p, kinds); err != nil {
		return err
	}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return err
	}
	before := len(m.file.Runs)
	err = errors.Join(c.Run(ctx), m.save())
	err = errors.Join(err, os.RemoveAll(c.Dir))
	fmt.Fprint(m.out, report.Text(m.file.Runs[before:]))
	return err
}

func (m *session) done(r result.Run) {
	m.file.Runs = append(m.file.Runs, r)
	if !r.Unsupported {
		fmt.Fprintln(m.log, r)
	}
}

func (m *session) missing(s system.System, err error) {
	fmt.Fprintf(m.log, "%s is skipped: %v\n", s.Title(), err)
}

// save writes the results file, if one was requested.
func (m *session) save() error {
	if m.results == "" {
		return nil
	}
	return m.file.Write(m.results)
}
