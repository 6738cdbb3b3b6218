package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// useLease sets the lease_id in the environment.
func (d *harness) useLease(g lock.Grant) { d.env["PADDOCK_LEASE_ID"] = uuid.UUID(g.ID).String() }

func TestRenewExtendsAndPrintsTheLease(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	before := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me", TTL: time.Minute})
	d.useLease(before)
	d.expectOutput(strings.TrimSuffix(leaseTable, "METADATA  {\"why\":\"it's night\"}\n"), "renew", "jobs:nightly")
	d.expectOutput(leaseEnv, "renew", "jobs:nightly", "-o", "env")

	stdout, _ := d.expectExit(exitOK, "renew", "jobs:nightly", "--ttl=1h", `--metadata={"at":"page 7"}`, "-o", "json")
	var lease api.Lease
	if err := json.Unmarshal([]byte(stdout), &lease); err != nil {
		t.Fatal(err)
	}
	if lease.TTLMs != time.Hour.Milliseconds() || !lease.ExpiresAt.After(before.ExpiresAt) ||
		!strings.Contains(string(lease.Metadata), "page 7") {
		t.Errorf("the lease is\n%s", stdout)
	}
}

func TestHolderLearnsHowItsLeaseWasLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl  time.Duration
		end  func(*harness, lock.Grant)
		says []string
	}{
		"by a revocation": {time.Hour, func(d *harness, g lock.Grant) {
			_, err := d.locks.Revoke(d.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Reason: "db-3 is \u200breplaced"})
			if err != nil {
				d.Fatal(err)
			}
		}, []string{"lease_lost", `An operator revoked it: db-3 is \u200breplaced. Stop the work`}},
		"by time": {200 * time.Millisecond, func(d *harness, g lock.Grant) { d.awaitEvent(g.Name, lock.Expired, g.Holder) },
			[]string{"lease_lost", "expired"}},
		"by an unknown lease_id": {time.Hour, func(d *harness, _ lock.Grant) {
			d.useLease(lock.Grant{Lease: lock.Lease{ID: lock.LeaseID(uuid.New())}})
		}, []string{"lease_lost", "check name and lease_id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			grant := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me", TTL: c.ttl})
			d.useLease(grant)
			c.end(d, grant)
			d.expectFailure(exitLeaseLost, c.says, "renew", "jobs:nightly")
			d.expectFailure(exitLeaseLost, c.says, "release", "jobs:nightly")
		})
	}
}

func TestReleaseIsSilentAndRepeatable(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.useLease(d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"}))
	for range 2 {
		d.expectOutput("", "release", "jobs:nightly")
	}
	d.expectFailure(exitLeaseLost, []string{"was released"}, "renew", "jobs:nightly")
}
