package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-lock/paddock/lock"
)

func drawPlans(t *testing.T, seed uint64) []plan {
	t.Helper()
	o, err := Options{Services: make([]Replica, 3), Prefix: "verify", Seed: seed}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	var plans []plan
	for client := range 4 {
		for turn := range 20 {
			plans = append(plans, o.draw(client, turn))
		}
	}
	return plans
}

func TestSameSeedGivesTheSamePlans(t *testing.T) {
	t.Parallel()
	same := func(a, b []plan) string {
		return cmp.Diff(a, b, cmp.AllowUnexported(plan{}, step{}, otherLock{}), cmpopts.IgnoreUnexported(lock.Acquire{}, lock.Closing{}))
	}
	if diff := same(drawPlans(t, 1), drawPlans(t, 1)); diff != "" {
		t.Error(diff)
	}
	if same(drawPlans(t, 1), drawPlans(t, 2)) == "" {
		t.Error("another seed gives the same plans")
	}
	plans := drawPlans(t, 3)
	if same(plans[:20], plans[20:40]) == "" {
		t.Error("two clients have the same plans")
	}
}

func TestPlansKeepToTheBoundsOfTheService(t *testing.T) {
	t.Parallel()
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int]int{}
	for _, ttl := range []time.Duration{lock.MinTTL, time.Second, time.Minute, lock.MaxTTL / 2} {
		o, err := Options{Services: make([]Replica, 1), Prefix: "verify", TTL: ttl}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 500 {
			p := o.draw(0, turn)
			a := p.acquire
			a.Locks[0].Name, a.Holder, a.LeaseID = "n", "h", lock.LeaseID{1}
			if _, err := a.Resolve(widest); err != nil {
				t.Fatalf("with the TTL %v: %v", ttl, err)
			}
			sizes[len(p.others)+1]++
			for i, other := range p.others {
				if other.lock == p.lock || slices.ContainsFunc(p.others[:i], func(o otherLock) bool { return o.lock == other.lock }) {
					t.Fatalf("turn %d names a lock twice: %+v", turn, p)
				}
			}
		}
	}
	for n := 2; n <= maxSet; n++ {
		if sizes[n] < 50 {
			t.Errorf("only %d of 2000 turns acquire %d locks together", sizes[n], n)
		}
	}
}

func TestAbandonLostWaitsWaitsLongAndRevokesNothing(t *testing.T) {
	t.Parallel()
	o, err := Options{Services: []Replica{{}}, Prefix: "x", AbandonLostWaits: true}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	for turn := range 1000 {
		p := o.draw(1, turn)
		if p.acquire.Wait > 0 {
			waits++
		}
		if p.kind == revoke || p.cancelAfter != never || p.acquire.KeepPlace ||
			p.acquire.Wait != 0 && p.acquire.Wait != lock.MaxWait {
			t.Fatalf("turn %d is %+v", turn, p)
		}
	}
	if waits == 0 {
		t.Error("no client waits")
	}
}
