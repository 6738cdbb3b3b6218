package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestListShowsModesHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewSharedService(), "/ui/?prefix=")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body,
		"<small class=\"mode\">shared, 3 holders, one token</small>",
		"<small class=\"mode\">permit, 3 of 4 out</small>",
		", 7 holders, one token</small>", `<a href="/ui/locks/index:docs">and 4 more`,
		`<div>3<small>slot 2</small></div>`, `<bdi>train-b</bdi>`,
		`<a href="/ui/locks/db:schema#queue" data-key="queue db:schema">2<span class="unseen"> waiting for db:schema</span></a>`,
		`<span class="past">0</span>`)
	if n := len(formsOf(body)); n != 3+3+1+3 {
		t.Errorf("%d forms, want one for each of the 10 leases", n)
	}
}

func TestFilteredHolderIsShownAmongMany(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewSharedService(), "/ui/?holder=search-7")
	wantText(t, body, "<bdi>search-7</bdi>", "and 4 more")
}

func TestLockPageShowsLeases(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewSharedService(), "/ui/locks/gpu:pool")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body,
		`<h1 class="lock">gpu:<wbr>pool`, "<dd>permit<small>3 of 4 out</small></dd>", "No waiters.",
		"<bdi>train-a</bdi>", "<div>2<small>slot 1</small></div>", "<div>4<small>slot 3</small></div>",
		`data-left-ms="3510000">58 min 30 s<`, "then 5 s grace",
		`data-stream="/v1/events/stream?lock=gpu%3Apool"`, `href="/v1/events?lock=gpu%3Apool"`)
	_, body = get(t, webtest.NewSharedService(), "/ui/locks/index%3Adocs")
	wantText(t, body, "7 holders, one token", "Revoke all 7")
}

func TestQueueShowsWhatEachWaiterWaitsFor(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewSharedService(), "/ui/locks/jobs:night")
	wantText(t, body,
		`<dd>3<small>1 disconnected</small></dd>`,
		`class="number">1</th>`, "<bdi>worker-2</bdi>", "2031-05-04 11:59:45", `for <span data-age-ms="15000">15 s</span>`,
		`<div><span class="line"><a class="by" href="/ui/holder?holder=worker-1"><bdi>worker-1</bdi></a> (token 5, ends in <span data-left-ms="12000" data-end="0 s">12 s</span> unless renewed)</span></div>`,
		`its client to reconnect; place kept for <span data-left-ms="7000" data-end="0 s">7 s</span></div>`,
		`disconnected<small>place kept for <span data-left-ms="7000" data-end="0 s">7 s</span></small>`,
		`<div><span class="line">1 ahead</span><span class="line">held by <a class="by" href="/ui/holder?holder=worker-1"><bdi>worker-1</bdi></a> (token 5,`,
		"<div>connected</div>")
	if strings.Index(body, "<bdi>worker-3") > strings.Index(body, "<bdi>worker-4") {
		t.Error("the queue is out of order")
	}
	_, body = get(t, webtest.NewSharedService(), "/ui/locks/db:schema")
	wantText(t, body, `<bdi>report-2</bdi></a> (token 1 in slot 2, ends in `, "<div>shared</div>", "<div>exclusive</div>")
}

func TestWaiterForManyLeasesNamesAFew(t *testing.T) {
	t.Parallel()
	fx := webtest.NewSharedService()
	fx.Wait(lock.Acquire{Locks: lock.One("index:docs"), Holder: "w", TTL: time.Minute}, 0)
	for range 2 {
		fx.Wait(lock.Acquire{Locks: []lock.Member{{Name: "index:docs", Mode: lock.Permit, Capacity: 9}}, Holder: "w", TTL: time.Minute}, 0)
	}
	_, body := get(t, fx, "/ui/locks/index:docs")
	wantText(t, body, `<span class="line">and 4 more</span>`, "2 ahead", "permit<small>one of 9</small>")
}

func TestWaiterForALeaseInGrace(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	fx.Wait(lock.Acquire{Locks: lock.One("cron:reindex"), Holder: "w", TTL: time.Minute}, 0)
	_, body := get(t, fx, "/ui/locks/cron:reindex")
	wantText(t, body, `<bdi>cron-2</bdi></a> (token 3, in grace for <span data-left-ms="6000" data-end="0 s">6 s</span> unless renewed)`)
}

func TestUnblockedWaiterIsNext(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "h", TTL: time.Second}, 0)
	fx.Wait(lock.Acquire{Locks: lock.One("n"), Holder: "w", TTL: time.Minute}, 0)
	fx.Pass(2 * time.Second) // and no sweep has run
	_, body := get(t, fx, "/ui/locks/n")
	wantText(t, body, "No holders.", "its grant: it is next, and no lease is seen in its way")
}

func TestUnusedLockIsFree(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewService(), "/ui/locks/never:used")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, "No holders.", "No waiters.", `<span class="past">none</span>`, "revision 0")
}

func TestLongLockPagesAreCut(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	for i := range 120 {
		fx.Grant(lock.Acquire{Locks: []lock.Member{{Name: "n", Mode: lock.Shared}}, Holder: fmt.Sprintf("r-%d", i), TTL: time.Minute}, 0)
	}
	for range 130 {
		fx.Wait(lock.Acquire{Locks: lock.One("n"), Holder: "w", TTL: time.Minute}, 0)
	}
	for target, rows := range map[string]int{"/ui/locks/n?back=prefix%3Dn": 200, "/ui/locks/n?back=prefix%3Dn&all=1": 250} {
		_, body := get(t, fx, target)
		page, _, _ := strings.Cut(body, `id="timeline"`)
		if n := strings.Count(page, "data-key=\"n/") + strings.Count(page, "data-key=\"place "); n != rows {
			t.Errorf("%s has %d rows, want %d", target, n, rows)
		}
		wantText(t, body, `<dd>130</dd>`, "Revoke all 120")
	}
	_, body := get(t, fx, "/ui/locks/n?back=prefix%3Dn")
	wantText(t, body, `<a href="/ui/locks/n?all=1&amp;back=prefix%3Dn#leases">and 20 more</a>`, `<a href="/ui/locks/n?all=1&amp;back=prefix%3Dn#queue">and 30 more</a>`)
}

func TestLockPageLinksBackToTheFilteredList(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewSharedService(), "/ui/?prefix=jobs&state=held")
	wantText(t, body, `href="/ui/locks/jobs:night?back=prefix%3Djobs%26state%3Dheld#queue"`, `data-stream="/v1/events/stream?prefix=jobs"`)
	_, body = get(t, webtest.NewSharedService(), "/ui/locks/jobs:night?back=prefix%3Djobs%26state%3Dheld")
	wantText(t, body, `<a href="/ui/?prefix=jobs&amp;state=held">Locks</a>`, `href="/ui/locks/jobs:night?back=prefix%3Djobs%26state%3Dheld&amp;refresh=5">Refresh every 5 s`)
	_, body = get(t, webtest.NewSharedService(), "/ui/locks/jobs:night?refresh=5")
	wantText(t, body, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, "Stop refreshing")
}

func TestInvalidLockNameIsRefusedWithoutAStream(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/ui/locks/_", "/ui/locks/%3Cb%3E", "/ui/locks/a%2Fb", "/ui/locks/" + strings.Repeat("n", 201)} {
		r, body := get(t, webtest.NewService(), target)
		wantStatus(t, r, http.StatusBadRequest)
		wantText(t, body, `role="alert"`, "No such lock")
		if strings.Contains(body, "data-stream") || strings.Contains(body, "<b>") {
			t.Errorf("%s has a stream, or is not escaped:\n%s", target, body)
		}
	}
	fx := webtest.NewService()
	fx.BreakDown(lock.ErrUnavailable)
	r, body := get(t, fx, "/ui/locks/n")
	wantStatus(t, r, http.StatusServiceUnavailable)
	wantText(t, body, "data-stream", "Try again in a moment.")
}

func TestUntrustedTextIsEscapedInTheQueue(t *testing.T) {
	t.Parallel()
	fx := webtest.NewBusyService()
	fx.Wait(lock.Acquire{Locks: lock.One("hostile"), Holder: webtest.Hostile, TTL: time.Minute}, 0)
	_, body := get(t, fx, "/ui/locks/hostile")
	const inert = "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;&#34;&gt;&lt;img src=x onerror=alert(2)&gt;&#39;\u2069\u202egnorw</bdi>"
	if n := strings.Count(body, inert); n != 7 {
		t.Errorf("the holder is shown %d times, want 7: as holder, as waiter, as blocker, twice in the timeline and in the events", n)
	}
	for _, bad := range []string{"<script>", "<img src=x", "</pre><script"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestPageListsAllKindsOfEvents(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewService(), "/ui/")
	wantText(t, body, `data-kinds="granted released expired revoked queued dequeued withdrawn metadata_updated refused frozen thawed opened suspected"`)
}

// TestLockPageShowsTheChainOfWaits: what the holder of the lock waits for in turn, to the root, with links.
func TestLockPageShowsTheChainOfWaits(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("accounts"), Holder: "alice", TTL: time.Minute, Task: "alice"}, 9*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("billing"), Holder: webtest.Hostile, TTL: time.Minute, Task: "bob"}, 8*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("billing"), Holder: "alice", TTL: time.Minute, Task: "alice"}, 7*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("accounts"), Holder: "carol", TTL: time.Minute}, 6*time.Second)
	_, body := get(t, fx, "/ui/locks/accounts")
	if text := words(body, "chain"); !strings.Contains(text, "carol waits for accounts ; alice holds it alice waits for billing ; &lt;script&gt;") ||
		!strings.Contains(text, "waits for no lock.") {
		t.Errorf("the chain is %s", text)
	}
	wantText(t, body, `alice</bdi></a> waits for <a class="lock" href="/ui/locks/billing">billing</a>; <a class="by" href="/ui/holder?holder=`)
	wantNoText(t, body, "<script>alert")
	fx = webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("accounts"), Holder: "alice", TTL: time.Minute}, 9*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("accounts"), Holder: "carol", TTL: time.Minute}, 6*time.Second)
	_, body = get(t, fx, "/ui/locks/accounts")
	wantNoText(t, body, `id="chain"`)
}
