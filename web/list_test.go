package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestRowsShowLocks(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewBusyService(), "/ui/")
	wantStatus(t, r, http.StatusOK)
	wantText(t, body,
		">12:00:00</time> <span data-zone>UTC</span>",
		"billing:<wbr>invoice-run", "worker-7 on db-3", `data-left-ms="22000">22 s<`, "11:59:52", `for <span data-age-ms="8000">8 s<`,
		`data-left-ms="75600000">21 h 0 min<`, "&#34;ticket&#34;: &#34;OPS-4711&#34;",
		`<span class="pill">grace</span>`, `ended</b><small>grace: <span data-left-ms="6000">6 s<`,
		`data-left-ms="505000">8 min 25 s<`, "then 2 s grace",
		`<span class="pill">free</span>`)
	if n := strings.Count(body, "data-revoke"); n != 5 {
		t.Errorf("%d buttons for 5 leases", n)
	}
}

func TestTimeLeftIsShownInTwoUnits(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		400 * time.Millisecond:       `data-left-ms="400">1 s<`,
		1001 * time.Millisecond:      `data-left-ms="1001">2 s<`,
		59*time.Second + 1:           `data-left-ms="59000">59 s<`,
		time.Minute:                  `data-left-ms="60000">1 min 0 s<`,
		time.Hour - time.Millisecond: `data-left-ms="3599999">1 h 0 min<`,
		24 * time.Hour:               `data-left-ms="86400000">1 d 0 h<`,
	} {
		t.Run(left.String(), func(t *testing.T) {
			t.Parallel()
			fx := webtest.NewService()
			fx.Grant(lock.Acquire{Locks: lock.One("n"), Holder: "h", TTL: left}, 0)
			_, body := get(t, fx, "/ui/")
			wantText(t, body, want)
		})
	}
}

func TestUntrustedTextIsEscaped(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/ui/", "/ui/revoke?name=hostile&token=6"} {
		_, body := get(t, webtest.NewBusyService(), target)
		wantText(t, body, "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;&#34;&gt;&lt;img src=x onerror=alert(2)&gt;&#39;\u2069\u202egnorw</bdi>")
		for _, bad := range []string{"<script>", "<img src=x", "</pre><script"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s holds %q", target, bad)
			}
		}
	}
	_, body := get(t, webtest.NewBusyService(), `/ui/?prefix="><script>alert(1)</script>&holder="><script>alert(1)</script>`)
	if strings.Contains(body, "<script>alert") {
		t.Error("a filter is not escaped")
	}
}

func TestFiltersNarrowTheListAndAreKept(t *testing.T) {
	t.Parallel()
	for query, c := range map[string]struct {
		kept string
		rows int
	}{
		"prefix=billing%3A":          {`name="prefix" value="billing:"`, 2},
		"state=free":                 {`<option selected>free</option>`, 2},
		"holder=cron-2":              {`name="holder" value="cron-2"`, 1},
		"prefix=deploy&state=held":   {`<option selected>held</option>`, 1},
		"prefix=+deploy+":            {`name="prefix" value="deploy"`, 2},
		"refresh=5":                  {`<meta http-equiv="refresh" content="5">`, 7},
		"prefix=&state=&holder=":     {`<option value="">any</option>`, 7},
		"prefix=deploy&unknown=thin": {`name="prefix" value="deploy"`, 2},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			r, body := get(t, webtest.NewBusyService(), "/ui/?"+query)
			wantStatus(t, r, http.StatusOK)
			wantText(t, body, c.kept)
			if n := strings.Count(body, `scope="rowgroup"`); n != c.rows {
				t.Errorf("%d rows, want %d", n, c.rows)
			}
		})
	}
}

func TestInvalidFilterShowsAProblem(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewBusyService(), "/ui/?state=broken&prefix=deploy")
	wantStatus(t, r, http.StatusBadRequest)
	wantText(t, body, "use free, held, grace or suspect", `value="deploy"`)
	wantNoText(t, body, "data-stream")
}

// TestPagesAreLinked forwards through all locks, and back through as many pages as the URL remembers.
func TestPagesAreLinked(t *testing.T) {
	t.Parallel()
	const pages = 13
	fx := webtest.NewService()
	fx.PageSize = 2
	for i := range 2*pages - 1 {
		fx.Free(fmt.Sprintf("n:%02d", i))
	}
	first := regexp.MustCompile(`data-key="lock ([^"]*)"`)
	// walk follows the links until there is none, and returns the first lock of each page and the last page.
	walk := func(target, id string) (firsts []string, body string) {
		link := regexp.MustCompile(`id="` + id + `" rel="[a-z]*" href="([^"]*)"`)
		for {
			_, body = get(t, fx, target)
			firsts = append(firsts, first.FindStringSubmatch(body)[1])
			m := link.FindStringSubmatch(body)
			if m == nil {
				return firsts, body
			}
			target = strings.ReplaceAll(m[1], "&amp;", "&")
			wantText(t, target, "prefix=n")
		}
	}
	forwards, last := walk("/ui/?prefix=n", "next")
	if len(forwards) != pages {
		t.Fatalf("%d pages, which begin with %v, want %d", len(forwards), forwards, pages)
	}
	wantText(t, last, "First page")
	previous := regexp.MustCompile(`id="previous" rel="prev" href="([^"]*)"`).FindStringSubmatch(last)
	backwards, body := walk(strings.ReplaceAll(previous[1], "&amp;", "&"), "previous")
	slices.Reverse(backwards)
	if want := forwards[pages-11 : pages-1]; !slices.Equal(backwards, want) {
		t.Errorf("backwards the pages begin with %v, want %v", backwards, want)
	}
	wantText(t, body, "First page")
	if _, body = walk("/ui/?prefix=n&cursor=n:03&trail=n:01&trail=", "previous"); strings.Contains(body, "First page") {
		t.Error("the first page links to itself")
	}
}

func TestEmptyListsHaveHints(t *testing.T) {
	t.Parallel()
	_, body := get(t, webtest.NewService(), "http://paddock.example:8080/ui/")
	wantText(t, body, "No lock yet.", `curl --json`, "http://paddock.example:8080</span>/v1/locks/first/acquire")
	_, body = get(t, webtest.NewService(), "http://a$(b)/ui/")
	wantText(t, body, "http://127.0.0.1:8080</span>/v1/locks/first/acquire")
	_, body = get(t, webtest.NewBusyService(), "/ui/?prefix=zzz&state=held")
	wantText(t, body, "No lock matches.", "“<bdi>zzz</bdi>” and the state “<bdi>held</bdi>”", "Show all")
	_, body = get(t, webtest.NewBusyService(), "/ui/?cursor=zzz")
	wantText(t, body, "There are no more locks.", "First page")
}

func TestNoticeIsShownOnlyIfTrue(t *testing.T) {
	t.Parallel()
	for target, shown := range map[string]bool{
		"/ui/?revoked=deploy:staging&token=5":       true,
		"/ui/?revoked=deploy:production&token=4":    false, // it holds the lock
		"/ui/?revoked=deploy:staging&token=6":       false, // never granted for it
		"/ui/?revoked=%3Cb%3E&token=5":              false,
		"/ui/?revoked=deploy:staging&token=x":       false,
		"/ui/?revoked=deploy:staging&token=-1":      false,
		"/ui/?revoked=never:used&token=1":           false,
		"/ui/?revoked=deploy:staging&token=5&x=%00": true,
		"/ui/?token=5": false,
		"/ui/?revoked=deploy:staging&token=5&state=x": false, // the list itself is refused
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			_, body := get(t, webtest.NewBusyService(), target)
			if strings.Contains(body, `class="notice"`) != shown {
				t.Errorf("notice shown: %v, want %v", !shown, shown)
			}
		})
	}
}

// TestListAnswersWhatHurts: it is searched by a part of the name, narrowed to locks with waiters, and sorted.
func TestListAnswersWhatHurts(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"q=a":                         {"db:schema"},
		"sort=waiters":                {"jobs:night", "db:schema", "gpu:pool", "index:docs"},
		"contended=true":              {"db:schema", "jobs:night"},
		"contended=true&sort=waiters": {"jobs:night", "db:schema"},
		"sort=age":                    {"gpu:pool", "index:docs", "db:schema", "jobs:night"},
		"sort=ending":                 {"jobs:night", "db:schema", "index:docs", "gpu:pool"},
		"sort=ending&q=:&state=held":  {"jobs:night", "db:schema", "index:docs", "gpu:pool"},
	} {
		r, body := get(t, webtest.NewSharedService(), "/ui/?"+query)
		wantStatus(t, r, http.StatusOK)
		var got []string
		for _, m := range regexp.MustCompile(`data-key="lock ([^"]*)"`).FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
	_, body := get(t, webtest.NewSharedService(), "/ui/?q=nig&contended=true&sort=ending")
	wantText(t, body, `name="q" type="search" value="nig"`, `name="contended" value="true" checked`, `value="ending" selected`,
		`href="/ui/locks/jobs:night?back=contended%3Dtrue%26q%3Dnig%26sort%3Dending"`)
	_, body = get(t, webtest.NewSharedService(), "/ui/?q=zz&contended=true&sort=age")
	wantText(t, body, "No lock has a name that contains “<bdi>zz</bdi>” and waiters.")
	_, body = get(t, webtest.NewSharedService(), "/ui/?q=zz&sort=age")
	wantText(t, body, "No lock has a name that contains “<bdi>zz</bdi>” and a holder or waiters.")
	r, _ := get(t, webtest.NewSharedService(), "/ui/?sort=name")
	wantStatus(t, r, http.StatusBadRequest)
}
