package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// flagCellOutage is how long a cell is away.
var flagCellOutage = flag.Duration("faults.celloutage", 0, "how long a cell is away in TestACellThatIsAwayCostsOnlyItsGroups; 0: 5s, or 30s in the long form")

func cellOutage() time.Duration {
	switch {
	case *flagCellOutage > 0:
		return *flagCellOutage
	case *flagLong:
		return 30 * time.Second
	}
	return 5 * time.Second
}

// TestACellThatIsAwayCostsOnlyItsGroups kills the database of one of three cells, and then suspends it, under load. In the
// other cells no call may fail and no lease may be lost; in the long form, calls may take at most twice as long as before.
// The cell serves again afterwards.
func TestACellThatIsAwayCostsOnlyItsGroups(t *testing.T) {
	t.Parallel()
	o := &outageOfCell{cells: newCells(t, program(t))}
	o.start()
	first := o.databases[0]
	for _, fault := range []struct {
		name       string
		begin, end func() error
	}{
		{"killed", first.host.Kill, func() error { return first.start(t.Context()) }},
		{"suspended", first.host.Pause, first.host.Resume},
	} {
		before := o.measure("before it is " + fault.name)
		if err := fault.begin(); err != nil {
			t.Fatal(err)
		}
		during := o.measure(fault.name)
		o.checkReady()
		if err := fault.end(); err != nil {
			t.Fatal(err)
		}
		o.serves()
		if during.others > 2*before.others {
			o.slower(before.others, during.others)
		}
		if during.first > before.first/2 {
			t.Errorf("%d calls were answered in the cell during its outage, and %d before, so this proves nothing", during.first, before.first)
		}
	}
}

// An outageOfCell is the deployment with a tenant in each cell. The first cell is away for a while.
type outageOfCell struct {
	*cells
	tenants []*tenant
}

// start starts the tenants, and returns once each has used its cell.
func (o *outageOfCell) start() {
	ctx, stop := context.WithCancel(o.Context())
	var all sync.WaitGroup
	o.Cleanup(func() { stop(); all.Wait() })
	for _, cell := range cellNames {
		n := &tenant{group: groupAt(cell), clients: o.clients()}
		o.tenants = append(o.tenants, n)
		all.Go(func() { n.run(ctx) })
	}
	o.serves()
	sleepFor(o.Context(), 2*time.Second) // the first calls make connections
	for _, n := range o.tenants {
		n.take()
	}
}

// serves waits until the calls of all tenants succeed for a second.
func (o *outageOfCell) serves() {
	o.Helper()
	for end := time.Now().Add(stepTimeout); ; {
		sleepFor(o.Context(), time.Second)
		var failed []error
		for _, n := range o.tenants {
			took, errs, _ := n.take()
			if failed = append(failed, errs...); len(took) == 0 {
				failed = append(failed, fmt.Errorf("%s: no call succeeded", n.group))
			}
		}
		switch {
		case len(failed) == 0:
			return
		case time.Now().After(end):
			o.Fatalf("%d calls fail, such as: %v", len(failed), failed[0])
		}
	}
}

// A measure is what the tenants have seen for a while.
type measure struct {
	first  int           // calls that were answered in the first cell
	others time.Duration // 99th percentile of the calls in the others
}

// measure lets the tenants work for the time of an outage, and checks that nothing failed in the second and the third cell.
func (o *outageOfCell) measure(phase string) (m measure) {
	o.Helper()
	sleepFor(o.Context(), cellOutage())
	var others []time.Duration
	for i, n := range o.tenants {
		took, failed, lost := n.take()
		o.Logf("%s, cell %s: %d calls, p99 %v, %d failed, %d lost", phase, cellNames[i], len(took), p99(took), len(failed), len(lost))
		if i == 0 {
			m.first = len(took)
			o.checkFailures(phase, failed)
			continue
		}
		others = append(others, took...)
		if len(failed)+len(lost) > 0 || len(took) == 0 {
			o.Errorf("%s: of the calls in the cell %s, %d succeeded, %d failed, and %d leases were lost: %v", phase, cellNames[i], len(took),
				len(failed), len(lost), append(failed[:min(3, len(failed))], lost[:min(3, len(lost))]...))
		}
	}
	m.others = p99(others)
	return m
}

// checkFailures checks that the answers of the service to calls in the first cell that fail name the cell.
func (o *outageOfCell) checkFailures(phase string, failed []error) {
	o.Helper()
	for _, err := range failed {
		if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrUnavailable && !strings.Contains(e.Detail, cellNames[0]) {
			o.Errorf("%s: the answer does not name the cell: %v", phase, err)
			return
		}
	}
}

// checkReady checks that each replica is ready, and names the cell that is away.
func (o *outageOfCell) checkReady() {
	o.Helper()
	for _, address := range o.addresses {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			o.Error(err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), cellNames[0]) {
			o.Errorf("/readyz answers %d, %v, and does not name the cell %s: %s", answer.StatusCode, err, cellNames[0], body)
		}
	}
}

// slower reports that calls in the other cells take too long: an error in the long form, since CI machines are often
// shared.
func (o *outageOfCell) slower(before, during time.Duration) {
	o.Helper()
	o.Logf("the 99th percentile in the other cells was %v before the outage and %v in it", before, during)
	if *flagLong {
		o.Error("that is more than twice as long")
	}
}
