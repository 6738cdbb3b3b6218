package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// mine has the environment name the lease.
func (d *desk) mine(g lock.Grant) { d.env["PADDOCK_LEASE_ID"] = uuid.UUID(g.ID).String() }

func TestRenewMovesTheEndAndPrintsTheLease(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	before := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me", TTL: time.Minute})
	d.mine(before)
	d.prints(strings.TrimSuffix(leaseTable, "METADATA  {\"why\":\"it's night\"}\n"), "renew", "jobs:nightly")
	d.prints(leaseEnv, "renew", "jobs:nightly", "-o", "env")

	stdout, _ := d.runs(exitOK, "renew", "jobs:nightly", "--ttl=1h", `--metadata={"at":"page 7"}`, "-o", "json")
	var lease wireLease
	if err := json.Unmarshal([]byte(stdout), &lease); err != nil {
		t.Fatal(err)
	}
	if lease.TTLMs != time.Hour.Milliseconds() || !lease.ExpiresAt.After(before.ExpiresAt) || !strings.Contains(string(lease.Metadata), "page 7") {
		t.Errorf("the lease is\n%s", stdout)
	}
}

func TestTheHolderLearnsHowTheLeaseWasLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl  time.Duration
		end  func(*desk, lock.Grant)
		says []string
	}{
		"by a revocation": {time.Hour, func(d *desk, g lock.Grant) {
			_, err := d.locks.Revoke(d.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Reason: "db-3 is \u200breplaced"})
			if err != nil {
				d.Fatal(err)
			}
		}, []string{"lease_lost", "revoked by an operator", `The reason given: db-3 is \u200breplaced`}},
		"by time": {200 * time.Millisecond, func(d *desk, g lock.Grant) { d.hears(g.Name, lock.Expired, g.Holder) }, []string{"lease_lost", "expired"}},
		"by a lease_id that is none": {time.Hour, func(d *desk, _ lock.Grant) {
			d.mine(lock.Grant{Lease: lock.Lease{ID: lock.LeaseID(uuid.New())}})
		}, []string{"lease_lost", "check name and lease_id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sitDown(t)
			grant := d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me", TTL: c.ttl})
			d.mine(grant)
			c.end(d, grant)
			d.refuses(exitLeaseLost, c.says, "renew", "jobs:nightly")
			d.refuses(exitLeaseLost, c.says, "release", "jobs:nightly")
		})
	}
}

func TestReleaseSaysNothingAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.mine(d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me"}))
	for range 2 {
		d.prints("", "release", "jobs:nightly")
	}
	d.refuses(exitLeaseLost, []string{"was released"}, "renew", "jobs:nightly")
}
