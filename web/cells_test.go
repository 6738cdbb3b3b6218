package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/web"
)

func TestCellsAreShown(t *testing.T) {
	t.Parallel()
	h := web.New(web.Options{
		Locks: webtest.NewBusyService(), Overview: func() web.Overview { return web.Overview{} },
		Cells: func(context.Context) []paddock.Cell {
			return []paddock.Cell{
				{Name: "main", Takes: true, Epoch: 3, Groups: []paddock.CellGroup{{Name: "billing"}, {Name: "jobs", Moving: true}}},
				{Name: "spare", Away: "The database <b>does not</b> answer."},
			}
		},
		CellOf: func(string) string { return "main" },
	})
	get := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	wantText(t, get("/ui/"), "Cell main", "epoch 3", "moved here: billing, jobs (moving)", "away", "&lt;b&gt;does not")
	if body := get("/ui/locks/jobs:nightly"); !strings.Contains(body, "<dt>Cell</dt><dd>main</dd>") {
		t.Errorf("the page of a lock lacks its cell: %s", body)
	}
}
