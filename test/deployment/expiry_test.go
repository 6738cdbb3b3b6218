package deployment_test

import (
	"net/http"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/tools"
	"github.com/paddock-lock/paddock/verify"
)

// A leaseBody is the answer to an acquire over HTTP.
type leaseBody struct {
	FencingToken lock.Token `json:"fencing_token"`
	TTL          int64      `json:"ttl_ms"`
	ExpiresIn    int64      `json:"expires_in_ms"`
	AcquiredAt   time.Time  `json:"acquired_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
}

// TestWaiterIsGrantedTheLockWhenTheLeaseOfAKilledHolderEnds makes no call while the waiter waits, at another replica
// than the holder's.
func TestWaiterIsGrantedTheLockWhenTheLeaseOfAKilledHolderEnds(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	before := s.mustAcquire(s.replicas[1], lock.Acquire{Holder: "before"})
	holder := s.startCurl(s.replicas[0], "holder", time.Second)
	s.listener.kind(lock.Queued, "holder")
	p := s.startPost(s.replicas[1], "waiter")
	s.listener.kind(lock.Queued, "waiter")
	s.release(s.replicas[1], before.ID)
	holder.Stdout.Await(t, `("fencing_token")`)
	holder.Kill(t)

	var lease leaseBody
	p.expectAnswer(http.StatusCreated, &lease)
	ended := s.listener.kind(lock.Expired, "holder")
	if lease.AcquiredAt.Before(ended.At) || lease.ExpiresAt.Sub(lease.AcquiredAt) != p.TTL {
		t.Errorf("the holder's lease ended at %v, the waiter's is %+v", ended.At, lease)
	}
	if left := time.Duration(lease.ExpiresIn) * time.Millisecond; left > p.TTL || left < p.TTL-p.TTL/100 {
		t.Errorf("%v are left of a TTL of %v that has just begun", left, p.TTL)
	}
	s.checkEvents(verify.Rules{})
}

// TestQueueAdvancesWhenUnrenewedLeasesEnd lets every waiter of a queue stop calling once it has the lock.
func TestQueueAdvancesWhenUnrenewedLeasesEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	first := s.mustAcquire(s.replicas[0], lock.Acquire{Holder: "holder"})
	var line []*caller
	for i, h := range numbered("waiter", 15) {
		line = append(line, s.startAcquire(s.replicas[i/2%2], lock.Acquire{Holder: h, TTL: 100 * time.Millisecond}))
		s.listener.kind(lock.Queued, h)
	}
	s.release(s.replicas[0], first.ID)
	var late []time.Duration
	for i, c := range line {
		if c.expectGrant(); i > 0 {
			late = append(late, c.grant.AcquiredAt.Sub(line[i-1].grant.ExpiresAt))
		}
	}
	slices.Sort(late)
	t.Logf("after the end of a lease, the next began: %v", late)
	if late[0] < 0 || late[len(late)/2] > time.Second {
		t.Errorf("the next lease must begin soon after the end of the one before: %v", late)
	}
	s.listener.kind(lock.Expired, line[len(line)-1].Holder)
	s.checkEvents(verify.Rules{})
}

// startCurl starts a curl process that waits for the lock and then ends.
func (s *fixture) startCurl(via replica, holder string, ttl time.Duration) *proctest.Process {
	s.Helper()
	a := s.complete(lock.Acquire{Holder: holder, TTL: ttl})
	p := proctest.New(exec.Command(tools.Path(s.T, "curl"), "-sSN", "--json", string(acquireBody(a)),
		via.base+"/v1/locks/"+s.name+"/acquire",
		"--next", "-sS", via.base+"/v1/events?cursor=now&wait_ms=50000&lock=another"))
	p.Start(s.T)
	return p
}
