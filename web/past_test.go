package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

// eventfulService is a service whose lock "n" was held by first, which expired after 20 s, and by second, for which
// third waits. Then first wrote too late.
func eventfulService() *webtest.Service {
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "first", TTL: 20 * time.Second}, 100*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "second", TTL: time.Hour}, 80*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("n"), Holder: "third", TTL: time.Minute}, 25*time.Second)
	fx.Apply(lock.ReportStale{Name: "n", Token: 1, Where: "table accounts", Lease: lock.Hold{
		Holder: "first", Mode: lock.Exclusive, EndedAt: webtest.Noon.Add(-80 * time.Second),
	}}, 10*time.Second)
	return fx
}

// words returns the text of the page's element from the heading to the end of its section.
func words(body, heading string) string {
	_, section, _ := strings.Cut(body, `id="`+heading+`"`)
	section, _, _ = strings.Cut(section, "</section>")
	text := regexp.MustCompile(`<rect class="([^"]*)" x="([^"]*)" y="2" width="([^"]*)"[^>]*>`).ReplaceAllString(section, "[$1 $2 $3]")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, " ")), " ")
}

func TestLockPageNamesEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	fx := eventfulService()
	fx.Broken = []paddock.Unreadable{{Name: "n", Detail: "The row of paddock.event_batches (id = 7) cannot be read."}}
	_, body := get(t, fx, "/ui/locks/n")
	if text := words(body, "events"); !strings.Contains(text, fx.Broken[0].Detail) || !strings.Contains(text, "queued exclusive") {
		t.Errorf("the events are %s", text)
	}
}

// TestLockPageOpensWithItsPast: leases, waits and events, the newest first.
func TestLockPageOpensWithItsPast(t *testing.T) {
	t.Parallel()
	_, body := get(t, eventfulService(), "/ui/locks/n")
	wants := map[string][]string{
		"timeline": {
			"2031-05-04 11:58:20 to 2031-05-04 12:00:00 UTC",
			"third wait 2031-05-04 11:59:35 25 s waiting [waiting wait 75.00% 25.00%]",
			"second token 2 2031-05-04 11:58:40 1 min 20 s held [held 20.00% 80.00%]",
			"first token 1 2031-05-04 11:58:20 20 s expired [expired 0.00% 20.00%]",
		},
		"events": {
			"refused exclusive 2031-05-04 11:59:50 first 1 1 min 10 s after the end of its lease; &#34;second&#34; held the lock then; newest token 2; table accounts",
			"queued exclusive 2031-05-04 11:59:35 third",
			"granted exclusive 2031-05-04 11:58:40 second 2",
			"expired exclusive 2031-05-04 11:58:40 first 1",
			"granted exclusive 2031-05-04 11:58:20 first 1",
		},
	}
	for heading, want := range wants {
		text, at := words(body, heading), -1
		for _, row := range want {
			next := strings.Index(text, row)
			if next <= at {
				t.Errorf("%s: %q is not at its place in:\n%s", heading, row, text)
			}
			at = next
		}
	}
}

// TestTimelineShowsTheStateOfALease: one that was not renewed in time is suspect or in its grace.
func TestTimelineShowsTheStateOfALease(t *testing.T) {
	t.Parallel()
	for state, a := range map[lock.State]lock.Acquire{
		lock.Suspect: {Stays: true}, lock.InGrace: {Grace: time.Minute}, lock.Held: {TTL: time.Hour},
	} {
		fx := webtest.NewService()
		a.Locks, a.Holder, a.TTL = lock.One("n"), "worker", max(a.TTL, 20*time.Second)
		fx.Grant(a, 30*time.Second)
		fx.Apply(lock.Sweep{Locks: []string{"n"}}, 0)
		_, body := get(t, fx, "/ui/locks/n")
		if text := words(body, "timeline"); !strings.Contains(text, fmt.Sprintf("%s [%[1]s ", state)) {
			t.Errorf("a lease that is %s: %s", state, text)
		}
	}
}

func TestOldEventsAreOnPagesOfTheirOwn(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Forgotten = true
	for i := range 30 {
		fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: fmt.Sprintf("h%d", i), TTL: time.Hour}, time.Duration(100-2*i)*time.Second)
		fx.Apply(lock.Release{Locks: []string{"n"}, LeaseID: webtest.CallID(fx.Calls)}, time.Duration(99-2*i)*time.Second)
	}
	fx.Grant(lock.Acquire{Locks: lock.One("other"), Holder: "stranger", TTL: time.Hour}, 0)
	target, seen := "/ui/locks/n?all=1", 0
	for page := 1; ; page++ {
		_, body := get(t, fx, target)
		rows := strings.Count(body, `data-key="event `)
		seen += rows
		if strings.Contains(body, "stranger") || (page > 1) != strings.Contains(body, `id="newest" href="/ui/locks/n?all=1#events"`) {
			t.Errorf("page %d: %s", page, words(body, "events"))
		}
		older := regexp.MustCompile(`id="older" rel="next" href="([^"]*)#events"`).FindStringSubmatch(body)
		if older == nil {
			if !strings.Contains(body, "Older events are no longer kept.") || page != 3 || seen != 60 {
				t.Errorf("page %d is the last one, with %d events seen: %s", page, seen, words(body, "events"))
			}
			break
		}
		if rows != 20 || strings.Contains(body, "no longer kept") {
			t.Errorf("page %d has %d events", page, rows)
		}
		if page == 1 && !strings.Contains(words(body, "timeline"), "10 earlier leases and waits are not shown.") {
			t.Errorf("the timeline: %s", words(body, "timeline"))
		}
		target = strings.ReplaceAll(older[1], "&amp;", "&")
	}
	_, body := get(t, fx, "/ui/locks/n?past=1")
	wantText(t, body, "There are no older events.", "No lease and no wait yet.")
	r, body := get(t, fx, "/ui/locks/n?past=x")
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "cursor is invalid")
}

// TestLeaseWithoutItsGrantIsInTheTimeline: its begin is unknown, and it is as long as the events at least.
func TestLeaseWithoutItsGrantIsInTheTimeline(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Feed.Send(
		lock.Event{Name: "n", Kind: lock.Expired, Mode: lock.Shared, Slot: 2, Holder: "old", Token: 1, At: webtest.Noon.Add(-time.Minute)},
		lock.Event{Name: "n", Kind: lock.Granted, Mode: lock.Exclusive, Holder: "new", Token: 2, At: webtest.Noon.Add(-time.Minute)},
		lock.Event{Name: "n", Kind: lock.Revoked, Mode: lock.Exclusive, Holder: "new", Token: 2, Reason: "<b>", Caller: lock.Caller{Name: "ops"}, At: webtest.Noon.Add(-time.Second)},
	)
	_, body := get(t, fx, "/ui/locks/n")
	text := words(body, "timeline")
	for _, want := range []string{"new token 2 2031-05-04 11:59:00 59 s revoked &lt;b&gt; (revoked by ops) [revoked 0.00% 100.00%]",
		"old token 1 slot 2 earlier more than 0 s expired [expired 0.00% 0.50%]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}
