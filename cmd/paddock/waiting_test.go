package main

import (
	"testing"
	"time"
)

func TestWaitLineKeepsHowManyAreAhead(t *testing.T) {
	t.Parallel()
	const node, wide = "ip-10-0-113-7.eu-central-1.compute.internal/worker", "数据库服务器一号 夜间批处理"
	long := []string{"billing:invoices:eu-central-1:customer-000417", "jobs:nightly"}
	for _, c := range []struct {
		names []string
		by    string
		room  int
		want  string
	}{
		{[]string{nightly}, "db-1", 0, "waiting for jobs:nightly, held by db-1 for 3m5s, 12 ahead"},
		{long, node, 0, "waiting for " + long[0] + ", jobs:nightly, held by " + node + " for 3m5s, 12 ahead"},
		{[]string{nightly}, "db-1", 79, "waiting for jobs:nightly, held by db-1 for 3m5s, 12 ahead"},
		{[]string{nightly}, node, 79, "waiting for jobs:nightly, held by ip-10-0-113-7.eu-central-… for 3m5s, 12 ahead"},
		{long, node, 79, "waiting for billing:invoices:e…, held by ip-10-0-113-7.eu-c… for 3m5s, 12 ahead"},
		{[]string{nightly}, wide, 59, "waiting for jobs:nig…, held by 数据库服… for 3m5s, 12 ahead"},
		{[]string{nightly}, "db-1", 39, "waiting, held by db-1, 12 ahead"},
		{[]string{nightly}, node, 39, "waiting, held by ip-10-0-113…, 12 ahead"},
		{[]string{nightly}, wide, 39, "waiting, held by 数据库服务…, 12 ahead"},
		{[]string{nightly}, "", 39, "waiting for jobs:nightly, 12 ahead"},
		{[]string{nightly}, node, 20, "waiting, 12 ahead"},
		{[]string{nightly}, node, 5, "waiting, 12 ahead"}, // which the console cuts
	} {
		v := &waitView{names: c.names, by: c.by, since: time.Now().Add(-185 * time.Second), ahead: 12}
		if got := v.line(c.room); got != c.want {
			t.Errorf("in %d columns: %q, want %q", c.room, got, c.want)
		}
	}
}
