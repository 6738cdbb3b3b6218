package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

// circularService is a service in which two tasks have waited for each other's locks, accounts:1 and accounts:2. The
// waiter for accounts:1 gave way.
func circularService() *webtest.Service {
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("accounts:1"), Holder: "alice", Task: "t", TTL: time.Hour}, 20*time.Second)
	fx.Grant(lock.Acquire{Locks: lock.One("accounts:2"), Holder: "bob", Task: "u", TTL: time.Hour}, 20*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("accounts:2"), Holder: "alice again", Task: "t.1", TTL: time.Hour}, 10*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("accounts:1"), Holder: "bob again", Task: "u.1", TTL: time.Hour}, 8*time.Second)
	fx.Apply(lock.BreakDeadlock{Locks: []string{"accounts:1", "accounts:2"}, LeaseID: webtest.CallID(4), Attachment: 4}, 5*time.Second)
	return fx
}

// TestADeadlockIsShownAsACircle, with its event and in the timeline: a ring, and the same in words.
func TestADeadlockIsShownAsACircle(t *testing.T) {
	t.Parallel()
	_, body := get(t, circularService(), "/ui/locks/accounts:1")
	const circle = "1 2 bob again waited for accounts:1 ; alice held it gave way " +
		"alice again waited for accounts:2 ; bob held it"
	for heading, want := range map[string]string{
		"events":   "bob again deadlock " + circle,
		"timeline": "dequeued deadlock circle of 2 " + circle,
	} {
		if text := words(body, heading); !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in:\n%s", heading, want, text)
		}
	}
	if n := strings.Count(body, `<a class="lock" href="/ui/locks/accounts:2">accounts:2</a>`); n != 2 {
		t.Errorf("%d links lead to the other lock:\n%s", n, body)
	}
	if n := strings.Count(body, `<svg class="ring" viewBox="0 0 120 120" width="120" height="120" aria-hidden="true" focusable="false">`); n != 2 {
		t.Errorf("there are %d rings", n)
	}
	if strings.Contains(body, "style=") {
		t.Error("the policy of the page forbids style attributes")
	}
	if _, other := get(t, circularService(), "/ui/locks/accounts:2"); strings.Contains(other, `class="ring"`) {
		t.Error("the lock that the victim did not wait for has a circle, but no such event")
	}
}

// sendCycle sends the event of the victim of a circle with that many calls.
func sendCycle(fx *webtest.Service, n int, holder, name string) {
	var steps []lock.DeadlockStep
	for i := range n {
		steps = append(steps, lock.DeadlockStep{Name: fmt.Sprint(name, i), Holder: holder, WaitsFor: holder, Ahead: i%2 == 1})
	}
	fx.Feed.Send(lock.Event{Name: "n", Revision: 2, Kind: lock.Dequeued, Mode: lock.Exclusive, Holder: "h", Place: 1,
		Reason: "deadlock", Cycle: lock.CycleOf(steps)})
}

var (
	ringNode  = regexp.MustCompile(`<circle[^>]* cx="([^"]*)" cy="([^"]*)" r="11"/>`)
	ringHead  = regexp.MustCompile(`<polygon points="([-0-9.]+),([-0-9.]+) ([-0-9.]+),([-0-9.]+) ([-0-9.]+),([-0-9.]+)"/>`)
	ringArrow = regexp.MustCompile(`<path d="M([-0-9.]+) ([-0-9.]+)A44 44 0 ([01]) 1 ([-0-9.]+) ([-0-9.]+)"/>`)
)

// TestRingsOfAllSizesAreInTheirDrawing: each call has a node of its own, an arrow and a head.
func TestRingsOfAllSizesAreInTheirDrawing(t *testing.T) {
	t.Parallel()
	for n := 1; n <= lock.MaxCycleSteps; n++ {
		fx := webtest.NewService()
		sendCycle(fx, n, "worker", "lock")
		_, body := get(t, fx, "/ui/locks/n")
		_, ring, _ := strings.Cut(body, `<svg class="ring"`)
		ring, _, _ = strings.Cut(ring, "</svg>")
		nodes := map[string]bool{}
		for _, m := range ringNode.FindAllStringSubmatch(ring, -1) {
			nodes[m[1]+" "+m[2]] = true
		}
		heads, arrows := ringHead.FindAllStringSubmatch(ring, -1), ringArrow.FindAllStringSubmatch(ring, -1)
		if len(nodes) != n || len(heads) != n || len(arrows) != n || strings.Count(ring, `class="victim"`) != 1 {
			t.Fatalf("of %d calls, there are %d nodes, %d heads and %d arrows:\n%s", n, len(nodes), len(heads), len(arrows), ring)
		}
		for _, m := range append(heads, arrows...) {
			for _, text := range m[1:] {
				if x, err := strconv.ParseFloat(text, 64); err != nil || x < 0 || x > 120 {
					t.Errorf("of %d calls, %s is outside of the drawing", n, text)
				}
			}
		}
		if large := arrows[0][3] == "1"; large != (n == 1) {
			t.Errorf("of %d calls, the arrow goes the long way round: %v", n, large)
		}
	}
}

// TestACircleShowsTextAsText, without links to locks that are hidden.
func TestACircleShowsTextAsText(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	sendCycle(fx, 2, webtest.Hostile, "(not covered)")
	_, body := get(t, fx, "/ui/locks/n")
	wantNoText(t, body, "<script>alert(1)", "<img src=x", "/ui/locks/%28")
	if !strings.Contains(words(body, "events"), "waited for (not covered)1 ; ") || !strings.Contains(words(body, "events"), "was ahead in its queue") {
		t.Errorf("the circle is:\n%s", words(body, "events"))
	}
}

// TestACircleInATreeLinksTheLockInTheWay, which is above or below the one that is waited for.
func TestACircleInATreeLinksTheLockInTheWay(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Feed.Send(lock.Event{Name: "n", Revision: 2, Kind: lock.Dequeued, Mode: lock.Exclusive, Holder: "h", Place: 1,
		Reason: "deadlock", Cycle: lock.CycleOf(stepsInTree)})
	_, body := get(t, fx, "/ui/locks/n")
	const want = "other waited for repo:src:c ; cleanup waited for repo , above it, and was ahead gave way cleanup waited for repo ; builder held repo:src:a , below it"
	if text := words(body, "events"); !strings.Contains(text, want) {
		t.Errorf("%q is not in:\n%s", want, text)
	}
	wantText(t, body, `<a class="lock" href="/ui/locks/repo:src:a">repo:src:a</a>, below it`)
}

// stepsInTree are of a chain or circle whose obstacles are at other locks of a tree.
var stepsInTree = []lock.DeadlockStep{
	{Name: "repo:src:c", Holder: "other", WaitsFor: "cleanup", At: "repo", Ahead: true},
	{Name: "repo", Holder: "cleanup", WaitsFor: "builder", At: "repo:src:a"},
}

// A chained is a service in which all queues have the chain of stepsInTree.
type chained struct{ *webtest.Service }

func (c chained) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	q, err := c.Service.Queue(ctx, name)
	q.Chain = &lock.WaitChain{Steps: stepsInTree, End: lock.ChainUnknown}
	return q, err
}

// TestAChainInATreeLinksTheLockInTheWay, as a circle does.
func TestAChainInATreeLinksTheLockInTheWay(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.Grant(lock.Acquire{Locks: lock.One("repo:src:c"), Holder: "before", TTL: time.Minute}, 7*time.Second)
	fx.Wait(lock.Acquire{Locks: lock.One("repo:src:c"), Holder: "other", TTL: time.Minute}, 6*time.Second)
	_, body := ask(t, web.New(web.Options{Locks: chained{fx}}), httptest.NewRequest(http.MethodGet, "/ui/locks/repo:src:c", nil))
	const want = "other waits for repo:src:c ; cleanup waits for repo , above it, and is ahead cleanup waits for repo ; builder holds repo:src:a , below it " +
		"It is not known what &#34;builder&#34; waits for."
	if text := words(body, "chain"); !strings.Contains(text, want) {
		t.Errorf("%q is not in:\n%s", want, text)
	}
	wantText(t, body, `<a class="lock" href="/ui/locks/repo:src:a">repo:src:a</a>, below it`)
}

// TestALongCircleHasNoPicture: its event does not have it.
func TestALongCircleHasNoPicture(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	sendCycle(fx, lock.MaxCycleSteps+1, "worker", "lock")
	if _, body := get(t, fx, "/ui/locks/n"); strings.Contains(body, `class="ring"`) || !strings.Contains(words(body, "events"), "h deadlock") {
		t.Errorf("the events are:\n%s", words(body, "events"))
	}
}
