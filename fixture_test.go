package paddock_test

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const name = "jobs:daily"

var t0 = time.Unix(0, 0).UTC()

func report(token lock.Token, slot *int) lock.ReportStale {
	return lock.ReportStale{Name: name, Token: token, Slot: slot, Where: "table invoices"}
}
