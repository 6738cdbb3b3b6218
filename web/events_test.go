package web_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// newLossesFixture returns a fixture with a loss of each kind, at noon and an hour before.
func newLossesFixture() *webtest.Service {
	fx := webtest.NewService()
	event := func(ago time.Duration, kind lock.Kind, name, holder string, with func(*lock.Event)) {
		e := lock.Event{At: webtest.Noon.Add(-ago), Name: name, Kind: kind, Mode: lock.Exclusive, Holder: holder, Token: 7, Revision: 1}
		if with != nil {
			with(&e)
		}
		fx.Feed.Send(e)
	}
	event(time.Hour, lock.Expired, "billing:run", "biller-1", nil)
	event(time.Hour, lock.Frozen, "billing:", "", func(e *lock.Event) { e.Reason, e.Caller.Name, e.Token = "migration", "ops", 0 })
	event(0, lock.Granted, "billing:run", "biller-2", nil)
	event(0, lock.Refused, "billing:run", "biller-1", func(e *lock.Event) {
		e.Late, e.HeldBy, e.Newest, e.Reason = 325*time.Millisecond, "biller-2", 9, "ledger"
	})
	event(0, lock.Revoked, "deploy", webtest.Hostile, func(e *lock.Event) {
		e.Reason, e.Session, e.Set = webtest.Hostile, 255, []string{"deploy", "deploy:eu", "(not covered)"}
		e.Caller = lock.Caller{Name: webtest.Hostile, KeyID: "k1", Trace: "0af7651916cd43dd8448eb211c80319c"}
	})
	event(0, lock.Dequeued, "jobs", "impatient", func(e *lock.Event) { e.Reason, e.Token = "wait ended", 0 })
	event(0, lock.Dequeued, "accounts:0", "mover-2", func(e *lock.Event) {
		e.Reason, e.Token = "deadlock", 0
		e.Cycle = lock.CycleOf([]lock.DeadlockStep{
			{Name: "accounts:0", Holder: "mover-2", WaitsFor: "mover-0"}, {Name: "accounts:1", Holder: "mover-0", WaitsFor: "mover-2"},
		})
	})
	return fx
}

// eventKinds returns the kinds of the listed events, in order.
func eventKinds(body string) (kinds []string) {
	for _, row := range strings.Split(body, `<th role="rowheader" scope="row"><span class="pill `)[1:] {
		kinds = append(kinds, row[:strings.IndexByte(row, '"')])
	}
	return kinds
}

func TestEventsOverLocksAreListed(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"": "dequeued dequeued revoked refused granted frozen expired",
		"kind=expired%2Crevoked%2Crefused%2Csuspected": "revoked refused expired",
		"kind=deadlock":                         "dequeued",
		"kind=frozen":                           "frozen",
		"prefix=billing%3A&kind=expired":        "expired",
		"holder=biller-1":                       "refused expired",
		"around=2031-05-04T11:03:00Z":           "frozen expired",
		"around=2031-05-04T11:06:00Z":           "",
		"since=2031-05-04+11:30&holder=mover-2": "dequeued",
		"until=2031-05-04+11:30":                "frozen expired",
	} {
		r, body := get(t, newLossesFixture(), "/ui/events?"+query)
		wantStatus(t, r, http.StatusOK)
		if got := strings.Join(eventKinds(body), " "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	_, body := get(t, newLossesFixture(), "/ui/events?holder=biller-1")
	wantText(t, body, "325 ms after the end of its lease; &#34;biller-2&#34; held the lock then; newest token 9; ledger", `<a href="/ui/locks/billing:run">`,
		`<a class="by" href="/ui/holder?holder=biller-1">`, `data-stream="/v1/events/stream"`, `data-holder="biller-1"`, `aria-current="page">Events`,
		`href="/v1/events?holder=biller-1&amp;order=desc"`)
	_, body = get(t, newLossesFixture(), "/ui/events?kind=deadlock")
	wantText(t, body, `waited for <a class="lock" href="/ui/locks/accounts:0">`, `waited for <a class="lock" href="/ui/locks/accounts:1">`, `data-kinds="dequeued"`, `<a class="by" href="/ui/holder?holder=mover-0">`)
	_, body = get(t, newLossesFixture(), "/ui/events?kind=frozen")
	wantText(t, body, `<a href="/ui/?prefix=billing%3A">`, "<bdi>migration</bdi>", `data-label="By" class="caller"><div><bdi>ops</bdi></div>`)
}

// TestEventsSayWhoCausedThem, as text, with the session, the set and the trace.
func TestEventsSayWhoCausedThem(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/ui/events?kind=revoked", "/ui/locks/deploy"} {
		r, body := get(t, newLossesFixture(), path)
		wantSecured(t, r, body)
		_, row, _ := strings.Cut(body, `<span class="pill revoked">revoked</span><small>`)
		row, _, _ = strings.Cut(row, "</tr>")
		wantText(t, row, `class="caller"><div><bdi>`+html.EscapeString(webtest.Hostile)+`</bdi><small>trace 0af7651916cd43dd8448eb211c80319c</small>`,
			`<a href="/ui/sessions/00000000000000ff"`, `together with <a class="lock" href="/ui/locks/deploy:eu">deploy:eu</a> and <span class="past">(not covered)</span>`)
		wantNoText(t, row, webtest.Hostile, "k1")
	}
}

// TestEventsSayWhichTimesTheyAreOf: the fields are read in UTC, and the page shows what that selects. Nothing is announced
// that cannot happen any more.
func TestEventsSayWhichTimesTheyAreOf(t *testing.T) {
	t.Parallel()
	const appear = "They appear here while this page is open"
	_, body := get(t, newLossesFixture(), "/ui/events?around=2020-05-04+16:55")
	wantText(t, body, "Around, UTC</label>", "Since, UTC</label>", "Until, UTC</label>", `<p id="window" class="past">From <time datetime="2020-05-04T16:50:00Z">`+
		`2020-05-04 16:50:00</time> to <time datetime="2020-05-04T17:00:00Z">2020-05-04 17:00:00</time> <span data-zone>UTC</span></p>`, "No event matches.")
	wantNoText(t, body, appear)
	_, body = get(t, newLossesFixture(), "/ui/events?until=2020-05-04+16:55")
	wantText(t, body, "Up to <time")
	_, body = get(t, newLossesFixture(), "/ui/events?holder=none&since=2020-05-04+16:55")
	wantText(t, body, `>2020-05-04 16:55:00</time> <span data-zone>UTC</span></p>`, appear)
	_, body = get(t, newLossesFixture(), "/ui/events")
	wantNoText(t, body, `id="window"`)
}

// TestEventsLeadToWhatHappenedAroundThem, on any page.
func TestEventsLeadToWhatHappenedAroundThem(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/ui/events?kind=expired", "/ui/locks/billing:run", "/ui/holder?holder=biller-1"} {
		_, body := get(t, newLossesFixture(), path)
		wantText(t, body, `href="/ui/events?until=2031-05-04T11%3A00%3A10Z"`)
	}
}

// TestEventsOfThePastHaveNoStream, nor those that a key does not cover.
func TestEventsOfThePastHaveNoStream(t *testing.T) {
	t.Parallel()
	_, body := get(t, newLossesFixture(), "/ui/events?until=2h")
	wantNoText(t, body, "data-stream")
	_, body = readBy(t, access.Key{ID: "k", Name: "billing", Role: access.Read, Prefixes: []string{"billing"}}, httptest.NewRequest(http.MethodGet, "/ui/events", nil))
	wantText(t, body, `data-stream="/v1/events/stream?prefix=billing%3A"`, "This key is for")
}

func TestInvalidEventFieldsAreShown(t *testing.T) {
	t.Parallel()
	for query, text := range map[string]string{
		"kind=none":                "kind is unknown; give granted",
		"around=noon":              "around &#34;noon&#34; is no time; give an instant such as",
		"since=-1h":                "since &#34;-1h&#34; is no time",
		"around=03:12&since=03:00": "around cannot be combined with since or until",
		"since=2031-05-04&until=x": "since &#34;2031-05-04&#34; is no time",
		"cursor=x":                 "cursor is invalid",
		"prefix=%3Cb%3E":           "prefix",
	} {
		r, body := get(t, newLossesFixture(), "/ui/events?"+query)
		wantStatus(t, r, http.StatusBadRequest)
		wantText(t, body, text)
		if strings.HasPrefix(query, "around") {
			wantNoText(t, body, `id="window"`)
		}
		wantSecured(t, r, body)
	}
}

func TestPagesOfEvents(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	for range 250 {
		fx.Feed.Send(lock.Event{At: webtest.Noon, Name: "n", Kind: lock.Granted, Mode: lock.Exclusive, Holder: "h", Token: 1, Revision: 1})
	}
	total, target := 0, "/ui/events?holder=h"
	for range 3 {
		_, body := get(t, fx, target)
		total += len(eventKinds(body))
		_, after, more := strings.Cut(body, `id="next" rel="next" href="`)
		if !more {
			break
		}
		target = strings.ReplaceAll(after[:strings.IndexByte(after, '"')], "&amp;", "&")
	}
	if total != 250 {
		t.Errorf("%d events on all pages, want 250", total)
	}
	_, body := get(t, fx, target)
	wantText(t, body, `id="first" href="/ui/events?holder=h"`, `id="previous"`)
}

// TestASearchWithoutAnEndSaysSo: the page says how far it has come, and goes on.
func TestASearchWithoutAnEndSaysSo(t *testing.T) {
	t.Parallel()
	fx := newLossesFixture()
	fx.SearchedTo = webtest.Noon.Add(-time.Hour)
	_, body := get(t, fx, "/ui/events?holder=nobody")
	wantText(t, body, "No event matches so far.", `Searched back to <time datetime="2031-05-04T11:00:00Z">`, `id="next"`)
	_, body = get(t, newLossesFixture(), "/ui/events?holder=nobody")
	wantText(t, body, "No event matches.")
	wantNoText(t, body, "Searched back", `id="next"`)
}

func TestHolderPage(t *testing.T) {
	t.Parallel()
	fx := newLossesFixture()
	fx.Grant(lock.Acquire{Locks: lock.One("a"), Holder: "biller-1", TTL: time.Minute}, 0)
	fx.Grant(lock.Acquire{Locks: lock.One("b"), Holder: "other", TTL: time.Minute}, 0)
	fx.Wait(lock.Acquire{Locks: lock.One("b"), Holder: "biller-1", TTL: time.Minute}, 4*time.Second)
	r, body := readHolder(t, fx, "biller-1")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body, `<title>Holder biller-1 · Paddock</title>`, `<h1 class="lock">Holder <bdi>biller-1</bdi></h1>`, `href="/ui/locks/a">a</a>`, "Revoke selected", `href="/ui/locks/b">b</a>`, `<bdi>other</bdi></a> (token`,
		`<span class="pill expired">`, `<span class="pill refused">`, `href="/ui/events?holder=biller-1"`, `data-holder="biller-1"`)
	_, body = readHolder(t, fx, "stranger")
	wantText(t, body, "Holds nothing.", "Waits for nothing", "No loss")
	_, body = readHolder(t, fx, webtest.Hostile)
	wantText(t, body, "<bdi>&lt;script&gt;alert(1)")
	wantNoText(t, body, "<script>", "<img src=x")
	r, body = readHolder(t, fx, strings.Repeat("h", lock.MaxHolderLength+1))
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "<title>No such holder · Paddock</title>")
}

// TestHolderPageSaysWhereItIsCut: the waits and the losses are those of its last events.
func TestHolderPageSaysWhereItIsCut(t *testing.T) {
	t.Parallel()
	fx := newLossesFixture()
	fx.Grant(lock.Acquire{Locks: lock.One("b"), Holder: "other", TTL: time.Minute}, 0)
	fx.Wait(lock.Acquire{Locks: lock.One("b"), Holder: "biller-1", TTL: time.Minute}, 4*time.Second)
	for range 188 {
		fx.Feed.Send(lock.Event{At: webtest.Noon, Name: "n", Kind: lock.Granted, Mode: lock.Exclusive, Holder: "biller-1", Token: 1, Revision: 1})
	}
	_, body := readHolder(t, fx, "biller-1")
	wantNoText(t, body, "last 200 events")
	for range 10 {
		fx.Feed.Send(lock.Event{At: webtest.Noon, Name: "n", Kind: lock.Expired, Mode: lock.Exclusive, Holder: "biller-1", Token: 1, Revision: 1})
	}
	_, body = readHolder(t, fx, "biller-1")
	wantText(t, body, "Found by its last 200 events, so there may be more.", "Of its last 200 events.")
	_, body = readHolder(t, fx, "other")
	wantNoText(t, body, "last 200 events")
}

func readHolder(t *testing.T, fx *webtest.Service, holder string) (*http.Response, string) {
	t.Helper()
	return get(t, fx, "/ui/holder?holder="+url.QueryEscape(holder))
}

// TestEventsShowWhereAnEpochBegan: with its reason, if the key may see the page of the service.
func TestEventsShowWhereAnEpochBegan(t *testing.T) {
	t.Parallel()
	memory := memlock.New()
	locks := memory.Replica(1)
	grant := func(name string) time.Time {
		t.Helper()
		g, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), Holder: "h", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return g.AcquiredAt
	}
	began := grant("before").Add(time.Nanosecond)
	info := func(context.Context) paddock.ServiceInfo {
		return paddock.ServiceInfo{Databases: []paddock.DatabaseInfo{{
			Epoch:   paddock.EpochInfo{Number: 8, BeganAt: began, Reason: webtest.Hostile},
			Earlier: []paddock.EarlierEpoch{{Number: 7, BeganAt: began.Add(-time.Hour), Reason: "earlier"}},
		}}}
	}
	page := func(role access.Role, cells func(context.Context) []paddock.Cell) string {
		t.Helper()
		h := web.New(web.Options{Locks: locks, Info: info, Cells: cells})
		r := httptest.NewRequest(http.MethodGet, "/ui/events", nil)
		_, body := ask(t, h, r.WithContext(access.WithKey(r.Context(), access.Key{ID: "k", Name: "n", Role: role})))
		return body
	}
	wantNoText(t, page(access.Read, nil), "poch")
	memory.BeginEpoch()
	grant("after")
	body := page(access.Admin, nil)
	wantText(t, body, "<strong>Epoch 8 began</strong> at", "<bdi>"+html.EscapeString(webtest.Hostile)+"</bdi>")
	wantNoText(t, body, "Epoch 7")
	if order := []int{strings.Index(body, "/ui/locks/after"), strings.Index(body, "Epoch 8"), strings.Index(body, "/ui/locks/before")}; !slices.IsSorted(order) {
		t.Errorf("the epoch is not between the events: %v", order)
	}
	body = page(access.Read, nil)
	wantText(t, body, "<strong>A new epoch began:</strong> the database was failed over")
	wantNoText(t, body, "Epoch 8")
	wantNoText(t, page(access.Admin, func(context.Context) []paddock.Cell { return nil }), "poch")
}

// TestEventsShowTheEpochsOfTheirRange, also where there is no later event, or no event at all, and each on one page only.
func TestEventsShowTheEpochsOfTheirRange(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	send := func(n int, ago time.Duration, kind lock.Kind) {
		for range n {
			fx.Feed.Send(lock.Event{At: webtest.Noon.Add(-ago), Name: "n", Kind: kind, Mode: lock.Exclusive, Holder: "h", Token: 1, Revision: 1})
		}
	}
	send(50, time.Hour, lock.Expired)
	send(paddock.DefaultLimit, 0, lock.Granted)
	info := func(context.Context) paddock.ServiceInfo {
		return paddock.ServiceInfo{Databases: []paddock.DatabaseInfo{{
			Epoch:   paddock.EpochInfo{Number: 9, BeganAt: webtest.Noon.Add(time.Minute)},
			Earlier: []paddock.EarlierEpoch{{Number: 8, BeganAt: webtest.Noon.Add(-30 * time.Minute)}, {Number: 7, BeganAt: webtest.Noon.Add(-2 * time.Hour)}},
		}}}
	}
	h := web.New(web.Options{Locks: fx, Info: info})
	rows := regexp.MustCompile(`<strong>Epoch (\d) began|<th role="rowheader" scope="row"><span class="pill (\w+)"`)
	wantRows := func(query, want string) (body string) {
		t.Helper()
		_, body = ask(t, h, httptest.NewRequest(http.MethodGet, "/ui/events?"+query, nil))
		var got []string
		for _, row := range rows.FindAllStringSubmatch(body, -1) {
			if text := row[1] + row[2]; len(got) == 0 || got[len(got)-1] != text {
				got = append(got, text)
			}
		}
		if list := strings.Join(got, " "); list != want {
			t.Errorf("%s shows %q, want %q", query, list, want)
		}
		return body
	}
	first := wantRows("", "9 granted")
	_, next, _ := strings.Cut(first, `id="next" rel="next" href="/ui/events?`)
	wantRows(html.UnescapeString(next[:strings.IndexByte(next, '"')]), "8 expired")
	wantRows("kind=expired", "9 8 expired")
	wantRows("kind=expired&since=2031-05-04T09:00:00Z", "9 8 expired 7")
	wantRows("until=2031-05-04T11:45:00Z", "8 expired")
	wantRows("until=2031-05-04T11:15:00Z", "expired")
	wantText(t, wantRows("around=2031-05-04T11:28:00Z", "8"), "No event matches.")
	wantRows("kind=revoked", "")
	fx.SearchedTo = webtest.Noon.Add(-time.Hour)
	wantRows("kind=revoked", "9 8")
	wantRows("kind=revoked&cursor=2", "")
}
