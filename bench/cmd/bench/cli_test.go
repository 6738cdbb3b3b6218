package main

import (
	"strings"
	"testing"
)

func TestInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing":          {nil, exitUsage, "usage: bench"},
		"no such command":  {[]string{"walk"}, exitUsage, "usage: bench"},
		"no such flag":     {[]string{"run", "-fast"}, exitUsage, "-fast"},
		"a stray argument": {[]string{"smoke", "paddock"}, exitUsage, ""},
		"help":             {[]string{"run", "-h"}, 0, "-workload"},
		"no such system":   {[]string{"run", "-system", "paddock,mutex"}, exitFailed, "there is no system mutex; use all, peers, or some of paddock,"},
		"no such workload": {[]string{"run", "-workload", "sleep"}, exitFailed, "there is no workload sleep; use some of batch, beside, contended,"},
		"no clients":       {[]string{"run", "-clients", "0"}, exitFailed, "is not a number of clients"},
		"no such part":     {[]string{"all", "-parts", "Idle$^"}, exitFailed, "no title matches"},
		"no results":       {[]string{"report", "-results", "nowhere.json"}, exitFailed, "nowhere.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, log strings.Builder
			if code := run(t.Context(), c.args, &out, &log); code != c.code || !strings.Contains(log.String(), c.says) {
				t.Errorf("exit code %d, want %d; stderr: %q", code, c.code, log.String())
			}
		})
	}
}

func TestEveryPartOfThePlansIsValid(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]part{fullPlan(3), smokePlan()} {
		for _, part := range parts {
			systems, workloads, err := new(settings).choose(part)
			if err != nil || len(systems) == 0 || len(workloads) == 0 || part.seconds <= 0 || part.rounds <= 0 {
				t.Errorf("%+v: %d systems, %d workloads, %v", part, len(systems), len(workloads), err)
			}
		}
	}
}

func TestThePlanHasEveryWorkload(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, part := range fullPlan(1) {
		for _, name := range list(part.workloads) {
			seen[name] = true
		}
	}
	for name := range new(settings).workloads(nil) {
		if !seen[name] {
			t.Errorf("the plan has no workload %s", name)
		}
	}
}

func TestSystemNamesAndTitlesAreUnique(t *testing.T) {
	t.Parallel()
	names, titles := map[string]bool{}, map[string]bool{}
	for _, s := range (&settings{events: 1}).allSystems() {
		if names[s.Name()] || titles[s.Title()] || strings.ContainsAny(s.Name(), " /,") {
			t.Errorf("%s, %s: not unique, or not a valid name", s.Name(), s.Title())
		}
		names[s.Name()], titles[s.Title()] = true, true
	}
}
