package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
)

var treeHead = regexp.MustCompile(`<div class="level level(\d)">(?s:.*?)</div></th>`)

// drawn returns the locks of the drawing on the page, with their levels.
func drawn(body string) (all []string) {
	for _, m := range treeHead.FindAllStringSubmatch(body, -1) {
		text := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[0], "")), "")
		all = append(all, m[1]+" "+text)
	}
	return all
}

func wantDrawn(t *testing.T, body string, want ...string) {
	t.Helper()
	if got := drawn(body); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the drawing has %q, want %q:\n%s", got, want, body)
	}
}

func TestLockShowsWhatIsHeldAboveAndBelow(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("above", "repo", lock.Shared)
		fx.hold("<b>", "repo:src:a:x", lock.Shared)
		fx.hold("sibling", "repo:doc", lock.Shared)
		time.Sleep(time.Minute)
		body := fx.page("/ui/locks/repo:src?back=prefix%3Dr")
		wantDrawn(fx.T, body, "0 repo", "1 repo:src", "2 repo:src:a", "3 repo:src:a:x")
		wantText(fx.T, body, `<a href="/ui/trees/repo">repo</a>`, `<a href="/ui/locks/repo:src:a:x?back=prefix%3Dr" data-key`, "<bdi>above</bdi>",
			"<bdi>&lt;b&gt;</bdi>", "<div>shared</div>", `<div>1</div>`, `<div>2</div>`, "59 min 0 s", "this lock", "can be acquired in the mode shared only:",
			`<a class="lock" href="/ui/locks/repo?back=prefix%3Dr">repo</a>, above it, has a shared lease.`)
		wantNoText(fx.T, body, "sibling", "cannot be acquired")
	})
}

func TestFreeLockSaysWhyItCannotBeAcquired(t *testing.T) {
	t.Parallel()
	type held struct {
		name string
		mode lock.Mode
	}
	for name, c := range map[string]struct {
		held []held
		want string // empty: nothing
	}{
		"an exclusive lease above":        {[]held{{"repo", lock.Exclusive}}, `cannot be acquired:</strong> ` + linkTo("repo") + `, above it, has an exclusive lease.`},
		"an exclusive lease below":        {[]held{{"repo:src:a", lock.Exclusive}}, `cannot be acquired:</strong> ` + linkTo("repo:src:a") + `, below it, has an exclusive lease.`},
		"a shared lease below":            {[]held{{"repo:src:a", lock.Shared}}, `shared only:</strong> ` + linkTo("repo:src:a") + `, below it, has a shared lease.`},
		"an exclusive after a shared one": {[]held{{"repo", lock.Shared}, {"repo:src:a:x", lock.Shared}}, `shared only:</strong> ` + linkTo("repo") + `, above it`},
		"shared and exclusive ones below": {[]held{{"repo:src:a", lock.Shared}, {"repo:src:b", lock.Exclusive}}, `cannot be acquired:</strong> ` + linkTo("repo:src:b") + `, below it, has an exclusive lease. 1 more lock above or below has leases, too.`},
		"a lock beside it":                {[]held{{"repo:doc", lock.Exclusive}}, ""},
		"its own lease":                   {[]held{{"repo:src", lock.Shared}, {"repo:src:a", lock.Shared}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTree(t, func(fx treeFixture) {
				for _, h := range c.held {
					fx.hold("h", h.name, h.mode)
				}
				body := strings.Join(strings.Fields(fx.page("/ui/locks/repo:src")), " ")
				if c.want == "" {
					wantNoText(fx.T, body, `id="obstacle"`)
					return
				}
				wantText(fx.T, body, c.want)
			})
		})
	}
}

func TestListSaysThatAFreeLockIsBlockedBelow(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("h", "repo:src:a", lock.Shared)
		wantText(fx.T, fx.page("/ui/"), "<small>in the mode shared only: blocked below</small>")
		fx.hold("h", "repo:doc", lock.Exclusive)
		wantText(fx.T, fx.page("/ui/?q=repo"), "<small>blocked below</small>")
		wantNoText(fx.T, fx.page("/ui/?state=held"), "blocked below")
	})
}

// TestLeasesAboveAndBelowCanBeRevoked together, by a reader who may revoke.
func TestLeasesAboveAndBelowCanBeRevoked(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for _, name := range []string{"repo:src:a", "repo:src:b", "repo:src:c"} {
			fx.hold("h", name, lock.Exclusive)
		}
		body := fx.page("/ui/locks/repo:src")
		wantText(fx.T, body, `form="several" name="lease" value="name=repo%3Asrc%3Aa&amp;token=1"`, "Revoke selected", `name="back" value="lock=repo%3Asrc"`,
			`Revoke<span class="unseen"> token 3 of repo:src:c`, "2 more locks above or below have leases, too.")
		_, body = fx.as(access.Key{Role: access.Read}, httptest.NewRequest(http.MethodGet, "/ui/locks/repo:src", nil))
		wantText(fx.T, body, "Held above and below")
		wantNoText(fx.T, body, `form="several"`, "Revoke selected", `data-revoke`)
		wantNoText(fx.T, fx.page("/ui/trees/repo"), `form="several"`)
	})
}

func TestLockOutsideOfTreesHasNoTree(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("h", "repository", lock.Exclusive)
		fx.hold("h", "repository:a", lock.Exclusive)
		wantNoText(fx.T, fx.page("/ui/locks/repository"), `href="/ui/trees/`, "Held above and below", `id="obstacle"`)
		free := fx.page("/ui/locks/repo:never")
		wantText(fx.T, free, `<a href="/ui/trees/repo">repo</a>`)
		wantNoText(fx.T, free, "Held above and below", `id="obstacle"`)
	})
}

func TestLeasesBelowAreFolded(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for i := range 105 {
			fx.hold("h", fmt.Sprintf("repo:%03d", i), lock.Exclusive)
		}
		body := fx.page("/ui/locks/repo")
		wantText(fx.T, body, `<a href="/ui/locks/repo?all=1#around">and 5 more leases below</a>`)
		if n := len(drawn(body)); n != 101 {
			t.Errorf("%d locks are drawn", n)
		}
		if n := len(drawn(fx.page("/ui/locks/repo?all=1"))); n != 106 {
			t.Errorf("%d locks are drawn on the whole page", n)
		}
	})
}

func TestWaitersSayWhereTheyWaitInATree(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("reader", "repo:src", lock.Shared)
		fx.wait("all", "repo")
		fx.wait("one", "repo:src:a")
		fx.wait("other", "repo:doc")
		root := fx.page("/ui/locks/repo")
		wantText(fx.T, root, `<bdi>reader</bdi></a> on `+linkTo("repo:src")+` (token 1, ends in`, `<span class="line">`+linkTo("repo:src:a")+`, below</span>`,
			`<span class="line">`+linkTo("repo:doc")+`, below</span><span class="line">1 ahead</span>`)
		wantNoText(fx.T, root, "2 ahead", "in slot", "it is next") // repo:doc may be granted before repo:src:a
		wantText(fx.T, fx.page("/ui/locks/repo:src:a"), `<bdi>reader</bdi></a> on `+linkTo("repo:src")+` (token 1`)
		doc := fx.page("/ui/locks/repo:doc")
		wantText(fx.T, doc, "1 ahead in the queue of "+linkTo("repo")+"</span>")
		wantNoText(fx.T, doc, "it is next")
		list := fx.page("/ui/?prefix=repo")
		wantText(fx.T, list, `1<span class="unseen"> waiting for repo</span></a><small>2 below</small>`, `1<span class="unseen"> waiting for repo:doc</span></a></div>`)
		wantNoText(fx.T, list, "waiting for repo:src<")
	})
}

func TestWaiterOfASetInATree(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("h", "repo:b", lock.Exclusive)
		fx.wait("mover", "repo:a", "repo:b", "x")
		wantText(fx.T, fx.page("/ui/locks/repo"), `<span class="line">`+linkTo("repo:a")+`, below</span>`, ">together with "+linkTo("repo:b")+", "+linkTo("x")+"</div>")
		wantText(fx.T, fx.page("/ui/locks/repo:a"), "<bdi>h</bdi></a> on "+linkTo("repo:b"), ">together with "+linkTo("repo:b")+", "+linkTo("x")+"</div>")
	})
}

func TestTreeIsDrawn(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		fx.hold("dash", "repo:src-old", lock.Exclusive)
		fx.hold("deep", "repo:src:a:x", lock.Exclusive)
		fx.hold("one", "repo:doc", lock.Shared)
		for i := range 4 {
			fx.hold(fmt.Sprint("reader ", i), "repo:doc", lock.Shared)
		}
		fx.hold("outside", "repository", lock.Exclusive)
		time.Sleep(time.Minute)
		fx.wait("writer", "repo:doc")
		fx.wait("all", "repo")
		body := fx.page("/ui/trees/repo")
		wantDrawn(fx.T, body, "0 repo", "1 repo:doc", "1 repo:src", "2 repo:src:a", "3 repo:src:a:x", "1 repo:src-old")
		wantText(fx.T, body, "As of </span><time", ">00:01:00</time> <span data-zone>UTC", "<bdi>deep</bdi>", "59 min 0 s", "<div>shared</div>", "<div>exclusive</div>",
			`and 2 more<span class="unseen"> holders of repo:doc</span>`, "<bdi>writer</bdi></a> <small>exclusive, for <span data-age-ms=\"0\">0 s</span></small>", "<bdi>all</bdi></a> <small>exclusive, for ")
		wantNoText(fx.T, body, "outside", "<script>", "More than")
		if n := strings.Count(body, "<bdi>writer</bdi>"); n != 1 {
			t.Errorf("the waiter is shown %d times", n)
		}
	})
}

func TestLargeTreeIsCut(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for i := range 201 {
			fx.hold("h", fmt.Sprintf("repo:%03d", 300-i), lock.Exclusive)
			time.Sleep(time.Millisecond)
		}
		body := fx.page("/ui/trees/repo")
		if all := drawn(body); len(all) != 201 || all[1] != "1 repo:101" {
			t.Errorf("%d locks are drawn, from %q", len(all), all[1])
		}
		wantText(fx.T, body, "More than 200 locks of this tree are held or waited for.", `<a href="/ui/?prefix=repo%3A">`)
	})
}

// TestKeyOfAPartSeesThatPart of a tree, and no name above it.
func TestKeyOfAPartSeesThatPart(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		key := access.Key{Role: access.Read, Prefixes: []string{"ops", "repo:src:a", "repo:doc", "repo:doc:x"}}
		fx.hold("boss", "repo:src", lock.Shared)
		fx.hold("mine", "repo:src:a:x", lock.Shared)
		fx.hold("mine too", "repo:doc:x:y", lock.Shared)
		fx.hold("foreign", "repo:secret", lock.Shared)
		r, body := fx.as(key, httptest.NewRequest(http.MethodGet, "/ui/trees/repo", nil))
		wantStatus(fx.T, r, http.StatusOK)
		wantDrawn(fx.T, body, "0 (notcovered)", "1 repo:doc", "2 repo:doc:x", "3 repo:doc:x:y", "2 repo:src:a", "3 repo:src:a:x")
		wantText(fx.T, body, "This key covers only "+linkTo("repo:doc")+", "+linkTo("repo:src:a")+" and the locks below.", "<bdi>(not covered)</bdi>", "<bdi>mine</bdi>")
		wantNoText(fx.T, body, "boss", "foreign", "secret", `name="confirm"`, `href="/ui/locks/repo"`, "/ui/locks/%28")
		_, body = fx.as(key, httptest.NewRequest(http.MethodGet, "/ui/locks/repo:src:a", nil))
		wantDrawn(fx.T, body, "0 (notcovered)", "2 repo:src:a", "3 repo:src:a:x")
		wantText(fx.T, strings.Join(strings.Fields(body), " "), `shared only:</strong> <span class="past">(not covered)</span>, above it, has a shared lease.`)
		wantNoText(fx.T, body, "boss", `href="/ui/locks/repo:src"`, "/ui/locks/%28")
	})
}

func TestManyPartsOfATreeAreCut(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		key := access.Key{Role: access.Read}
		for i := range 12 {
			key.Prefixes = append(key.Prefixes, fmt.Sprintf("repo:%02d", i))
		}
		_, body := fx.as(key, httptest.NewRequest(http.MethodGet, "/ui/trees/repo", nil))
		wantText(fx.T, body, linkTo("repo:09")+" and the locks below. 2 more parts of the tree that it covers are not shown.")
		wantNoText(fx.T, body, "repo:10")
	})
}

func TestRootWithTheLongestName(t *testing.T) {
	t.Parallel()
	fx := setFixture{t, memlock.New().Replica(1)}
	root := strings.Repeat("n", lock.MaxNameLength)
	if _, err := fx.locks.DeclareTree(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	fx.acquire(webtest.Hostile[:9], root)
	wantText(t, fx.page("/ui/trees/"+root), "Time left")
}

func TestUnknownTreeIsNotFound(t *testing.T) {
	t.Parallel()
	inTree(t, func(fx treeFixture) {
		for path, want := range map[string]int{
			"jobs": http.StatusNotFound, "repo:src": http.StatusNotFound, "repo:": http.StatusBadRequest, "%3Cb%3E": http.StatusBadRequest, "a%2Fb": http.StatusBadRequest,
		} {
			r, body := getFrom(fx.T, fx.locks, "/ui/trees/"+path+"?declared=1")
			wantStatus(fx.T, r, want)
			wantText(fx.T, body, "No such tree", `href="/ui/trees"`)
			wantNoText(fx.T, body, "<b>", "Declared.", "Remove the tree")
			wantSecured(fx.T, r, body)
		}
	})
}
