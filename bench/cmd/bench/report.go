package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"

	"github.com/paddock-lock/paddock/bench/report"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/soak"
)

// reportCommand regenerates the figures of a page.
func reportCommand(_ context.Context, args []string, out streams) error {
	set := flag.NewFlagSet("bench report", flag.ContinueOnError)
	page := set.String("page", "../docs/benchmarks.md", "page to update")
	results := set.String("results", "../docs/benchmarks/results.json", "results file")
	soaked := set.String("soak", "../docs/benchmarks/soak.json", "results file of a soak; may be missing")
	if err := parse(set, args, out); err != nil {
		return err
	}
	file, err := result.Read(*results)
	if err != nil {
		return err
	}
	long, err := soak.Read(*soaked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return report.Write(*page, file, long)
}
