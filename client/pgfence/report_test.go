package pgfence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/lock"
)

// reports is a service that keeps the reports.
type reports struct{ got []lock.ReportStale }

func (r *reports) ReportStale(ctx context.Context, s lock.ReportStale) (bool, error) {
	if _, limited := ctx.Deadline(); !limited || ctx.Err() != nil {
		return false, errors.New("a report with such a context may hang, or fails")
	}
	r.got = append(r.got, s)
	return true, nil
}

// TestReportIsOfStaleTokensAlone, whether or not the work's context has ended.
func TestReportIsOfStaleTokensAlone(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var service reports
	long := strings.Repeat("ä", 2*lock.MaxWhereLength)
	for _, c := range []struct {
		resource string
		refused  error
		want     bool
	}{
		{"accounts", &lock.Error{Code: lock.ErrStaleToken, Token: 41, Newest: 42}, true},
		{long, errors.Join(context.Canceled, &lock.Error{Code: lock.ErrStaleToken, Token: 43}), true},
		{"accounts", &lock.Error{Code: lock.ErrUnknownOutcome}, false},
		{"accounts", context.Canceled, false},
		{"accounts", nil, false},
	} {
		if recorded, err := pgfence.Report(ended, &service, "jobs:billing", c.resource, c.refused); recorded != c.want || err != nil {
			t.Errorf("%v: recorded %t, %v", c.refused, recorded, err)
		}
	}
	want := []lock.ReportStale{
		{Name: "jobs:billing", Token: 41, Where: "pgfence accounts"},
		{Name: "jobs:billing", Token: 43, Where: "pgfence " + long[:2*(lock.MaxWhereLength-len("pgfence "))]},
	}
	if diff := cmp.Diff(want, service.got); diff != "" {
		t.Errorf("other reports (-want +got):\n%s", diff)
	}
	for _, r := range service.got {
		if _, err := r.Resolve(); err != nil {
			t.Error(err)
		}
	}
}
