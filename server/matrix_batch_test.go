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

// batchable matches the paths of calls that may be items of a batch.
var batchable = regexp.MustCompile(`^/v1/locks/(.*)/(acquire|renew|release)$`)

// TestEveryItemForEveryCaller checks that a batch item gets the same result as the single call in the matrix.
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
				continue // the batch itself is refused
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

// checkItem checks that the result is the one that the cell demands.
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
