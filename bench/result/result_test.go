package result_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 101 {
		hundred = append(hundred, time.Duration(100-i)*time.Microsecond)
	}
	for name, c := range map[string]struct {
		samples []time.Duration
		want    result.Quantile
	}{
		"none":    {nil, result.Quantile{}},
		"one":     {[]time.Duration{1500}, result.Quantile{Count: 1, Mean: 1.5, P50: 1.5, P99: 1.5, Max: 1.5}},
		"hundred": {hundred, result.Quantile{Count: 101, Mean: 50, P50: 50, P99: 99, Max: 100}},
	} {
		if diff := cmp.Diff(c.want, result.Quantiles(c.samples)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCostsArePerOperation(t *testing.T) {
	t.Parallel()
	mark := func(n int64) measure.Mark {
		d := time.Duration(n) * time.Millisecond
		return measure.Mark{
			Client: d, CPU: map[system.Role]time.Duration{system.Server: 2 * d, system.Database: 3 * d},
			WAL: &measure.WAL{Bytes: 1000 * n, Fsyncs: 10 * n, Deleted: 20 * n},
		}
	}
	r := result.Run{Operations: 100}
	r.Spent(mark(10), mark(20))
	if want := (result.CPU{Client: 100, Server: 200, Database: 300}); r.CPU != want {
		t.Errorf("CPU: got %+v, want %+v", r.CPU, want)
	}
	if *r.WALBytes != 100 || *r.Fsyncs != 1 || *r.Deleted != 2 {
		t.Errorf("WAL: %v bytes, %v fsyncs, %v deleted", *r.WALBytes, *r.Fsyncs, *r.Deleted)
	}
	without := measure.Mark{}
	r = result.Run{}
	if r.Spent(without, without); r.WALBytes != nil || r.CPU != (result.CPU{}) {
		t.Errorf("without operations: %+v", r)
	}
}

func TestFailedReportsErrorsButNotUnsupportedRuns(t *testing.T) {
	t.Parallel()
	f := result.Part{Runs: []result.Run{{System: "a"}, {System: "b", Error: "not supported", Unsupported: true}}}
	if err := f.Failed(); err != nil {
		t.Error(err)
	}
	f.Runs = append(f.Runs, result.Run{System: "c", Workload: "mix", Round: 2, Error: "exclusion is broken"})
	if err := f.Failed(); err == nil || !strings.Contains(err.Error(), "c, mix, round 2: exclusion is broken") {
		t.Errorf("got %v", err)
	}
}

func TestAPartIsReplacedInItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	var f result.File
	for _, p := range []result.Part{
		{Title: "a", Runs: []result.Run{{System: "old"}}}, {Title: "b", Runs: []result.Run{{System: "x"}, {System: "y"}}},
		{Title: "a", Machine: result.Machine{Cores: 2}, Runs: []result.Run{{System: "new"}}},
	} {
		f.Put(p)
	}
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := result.Read(path)
	if diff := cmp.Diff(f, got); err != nil || diff != "" || len(got.Parts) != 2 || got.Parts[0].Runs[0].System != "new" {
		t.Errorf("read %+v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if lines := strings.Count(string(text), "\n"); err != nil || lines != 4 {
		t.Errorf("%d lines, want one for each run and one before: %s, %v", lines, text, err)
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 123456.6: "123,457", 10_000_000: "10,000,000", -4321: "-4,321"} {
		if got := result.Grouped(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
