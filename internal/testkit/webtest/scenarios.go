package webtest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Hostile is a holder with markup, quotes and characters that change the text direction.
const Hostile = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'\u2069\u202egnorw"

// NewBusyService returns a fixture with a lock of each kind.
func NewBusyService() *Service {
	fx := NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("billing:invoice-run"), Holder: "worker-7 on db-3", TTL: 30 * time.Second}, 8*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("billing:month-end"), Holder: "ops: Ada, by hand", TTL: 24 * time.Hour,
		Metadata: json.RawMessage(`{"ticket":"OPS-4711","host":"bastion-1","note":"<b>do not revoke</b> before the books are closed"}`)}, 3*time.Hour)
	fx.Grant(lock.Acquire{Locks: lock.One("cron:reindex"), Holder: "cron-2", TTL: 20 * time.Second, Grace: 10 * time.Second}, 24*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("deploy:production"), Holder: "pipeline 1881", TTL: 10 * time.Minute, Grace: 2 * time.Second}, 95*time.Second)
	fx.Free("deploy:staging")
	fx.Grant(lock.Acquire{Locks: lock.One("hostile"), Holder: Hostile, TTL: time.Hour,
		Metadata: json.RawMessage(`{"x":"</pre><script>alert(3)</script>\u202e"}`)}, time.Minute)
	fx.Free("leader:scheduler")
	return fx
}

// NewSharedService returns a fixture with locks that have several holders or waiters:
//
//	db:schema   shared by three, token 1; a writer and a reader wait
//	gpu:pool    three of four permits, tokens 2 to 4
//	jobs:night  exclusive, token 5; worker-2 waits, worker-3 is disconnected, worker-4 waits
//	index:docs  shared by seven, token 6
func NewSharedService() *Service {
	fx := NewService()
	for i := range 3 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "db:schema", Mode: lock.Shared}}, Holder: fmt.Sprintf("report-%d", i+1), TTL: time.Minute}, time.Duration(30-i)*time.Second)
	}
	fx.Wait(lock.Acquire{Locks: lock.One("db:schema"), Holder: "migration 218", TTL: time.Minute}, 12*time.Second)
	fx.Wait(lock.Acquire{Locks: []lock.Member{{Name: "db:schema", Mode: lock.Shared}}, Holder: "report-9", TTL: time.Minute}, 4*time.Second)
	for i := range 3 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "gpu:pool", Mode: lock.Permit, Capacity: 4}}, Holder: fmt.Sprintf("train-%c", 'a'+i), TTL: time.Hour, Grace: 5 * time.Second}, time.Duration(90-i)*time.Second)
	}
	fx.Grant(lock.Acquire{Locks: lock.One("jobs:night"), Holder: "worker-1", TTL: 30 * time.Second}, 18*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("jobs:night"), Holder: "worker-2", TTL: time.Minute}, 15*time.Second)
	away := fx.Wait(lock.Acquire{Locks: lock.One("jobs:night"), Holder: "worker-3", TTL: time.Minute, Wait: 10 * time.Second}, 9*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("jobs:night"), Holder: "worker-4", TTL: time.Minute}, 7*time.Second)
	fx.Apply(away, 3*time.Second)
	for i := range 7 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "index:docs", Mode: lock.Shared}}, Holder: fmt.Sprintf("search-%d", i+1), TTL: 5 * time.Minute}, time.Duration(60-i)*time.Second)
	}
	return fx
}
