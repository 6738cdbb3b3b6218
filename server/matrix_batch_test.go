package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// batchable are the calls that may be items of a batch, by their path.
var batchable = regexp.MustCompile(`^/v1/locks/(.*)/(acquire|renew|release)$`)

// TestEveryItemForEveryCaller: as an item of a batch each call gets what the matrix
// says of it, whoever calls.
func TestEveryItemForEveryCaller(t *testing.T) {
	t.Parallel()
	s, _, stage, k := serveWithKeys(t)
	tried := 0
	for _, row := range matrix {
		path := batchable.FindStringSubmatch(row.path)
		if path == nil {
			continue
		}
		name, err := url.PathUnescape(path[1])
		if err != nil {
			t.Fatal(err)
		}
		item := fmt.Sprintf(`{"op": %q, "name": %q, %s`, path[2], name, row.body[1:])
		for i, word := range strings.Fields(row.cells) {
			if cells[word].status == http.StatusUnauthorized {
				continue // the whole batch is
			}
			stage.reset(t)
			got := s.do(k.asCaller(s.request(http.MethodPost, batchPath, batchOf(item)), callers[i]))
			got.want(t, http.StatusOK, nil)
			checkItem(t, callers[i]+" "+item, resultsOf(t, got.text)[0], word)
			tried++
		}
	}
	if tried < 36 {
		t.Errorf("the matrix had %d cells to try", tried)
	}
}

// checkItem holds for a result that is what the word says.
func checkItem(t *testing.T, what string, got result, word string) {
	t.Helper()
	want := cells[word]
	if status, err := strconv.Atoi(word); err == nil {
		want.status = status
	}
	if code, _ := got.Problem["code"].(string); got.Status != want.status || code != want.code {
		t.Errorf("%s: %+v, want %d %q", what, got, want.status, want.code)
	}
}
