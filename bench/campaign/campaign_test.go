package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/bench/campaign"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

// A fake grants every lock and records when it is started and stopped.
type fake struct {
	name  string
	fails error // error of Start
	notes *[]string
	token int64
}

func (f *fake) Name() string                { return f.name }
func (f *fake) Title() string               { return f.name }
func (f *fake) Processes() []system.Process { return nil }

func (f *fake) Start(_ context.Context, dir string) error {
	*f.notes = append(*f.notes, "start "+f.name)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	return f.fails
}

func (f *fake) Stop() error {
	*f.notes = append(*f.notes, "stop "+f.name)
	return nil
}

func (f *fake) Client(context.Context) (system.Client, error) { return f, nil }
func (f *fake) Close() error                                  { return nil }
func (f *fake) Token() int64                                  { return f.token }
func (f *fake) Renew(context.Context) error                   { return nil }
func (f *fake) Release(context.Context) error                 { return nil }

func (f *fake) Acquire(context.Context, string, bool) (system.Lease, error) {
	time.Sleep(time.Millisecond) // on the bubble's clock
	f.token++
	return f, nil
}

// runCampaign runs a campaign of two rounds and returns its events in order.
func runCampaign(t *testing.T, systems ...*fake) ([]string, error) {
	t.Helper()
	var notes []string
	c := campaign.Campaign{
		Workloads: []workload.Workload{workload.Distinct(1), workload.Contended(1)},
		Rounds:    2, Options: workload.Options{Measured: time.Second}, Dir: t.TempDir(),
		Done: func(r result.Run) {
			notes = append(notes, fmt.Sprint(r.Round, " ", r.Workload, " ", r.System, r.Error))
		},
		Missing: func(s system.System, err error) { notes = append(notes, fmt.Sprint("without ", s.Name(), ": ", err)) },
	}
	for _, s := range systems {
		s.notes = &notes
		c.Systems = append(c.Systems, s)
	}
	err := c.Run(t.Context())
	return notes, err
}

func TestEachWorkloadRunsOnAllSystemsBeforeTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		notes, err := runCampaign(t, &fake{name: "a"}, &fake{name: "b", fails: fmt.Errorf("b: %w", system.ErrMissing)}, &fake{name: "c"})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"start a", "start b", "stop b", "without b: b: not installed", "start c",
			"1 distinct-1 a", "1 distinct-1 c", "1 contended-1 a", "1 contended-1 c",
			"2 distinct-1 a", "2 distinct-1 c", "2 contended-1 a", "2 contended-1 c",
			"stop c", "stop a",
		}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStartedSystemsAreStoppedWhenOneFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("its disk is full")
		notes, err := runCampaign(t, &fake{name: "a"}, &fake{name: "b", fails: broken}, &fake{name: "c"})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "starting b") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"start a", "start b", "stop b", "stop a"}, notes); diff != "" {
			t.Error(diff)
		}
	})
}
