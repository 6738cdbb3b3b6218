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
	file    result.File
	machine result.Machine
	failed  error // lists the failed runs
}

// measurePart measures a part, prints its results, and puts them into the results file.
func (m *session) measurePart(ctx context.Context, number int, p part) error {
	measured := result.Part{Title: p.title, Machine: m.machine}
	c := campaign.Campaign{
		Rounds: p.rounds, Options: workload.Options{Warm: seconds(p.warmup), Measured: seconds(p.seconds)},
		Dir: filepath.Join(m.dir, fmt.Sprint("part-", number+1)), Missing: m.missing,
		Done: func(r result.Run) {
			measured.Runs = append(measured.Runs, r)
			if !r.Unsupported {
				fmt.Fprintln(m.log, r)
			}
		},
	}
	var err error
	if c.Systems, c.Workloads, err = m.choose(p); err != nil {
		return err
	}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return err
	}
	err = c.Run(ctx)
	m.file.Put(measured)
	m.failed = errors.Join(m.failed, measured.Failed())
	err = errors.Join(err, m.save(), os.RemoveAll(c.Dir))
	fmt.Fprint(m.out, report.Text(measured.Runs))
	return err
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
