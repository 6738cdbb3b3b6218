package contract_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/exchange"
)

// record runs the tests of package server and returns the path of the recorded exchanges.
func record(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exchanges")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-C", "../..", "-tags=slow", "-count=1", "./server", "-server.exchanges="+path)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, output)
	}
	return path
}

func TestEveryExchangeMatchesTheDocument(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	total, events, accepted := 0, 0, map[string]bool{}
	err := exchange.Read(record(t), func(x exchange.Exchange) {
		total++
		if x.Event != nil {
			events++
		}
		operation, wrong := doc.check(t.Context(), x)
		if wrong != nil {
			t.Errorf("%s: %s %s: %d: %.1000v", x.Test, x.Method, x.URL, x.Status, wrong)
		}
		if x.Status < http.StatusBadRequest {
			accepted[operation] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d exchanges, %d of them events of streams", total, events)
	if events == 0 {
		t.Error("no event of a stream was recorded")
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if !accepted[method+" "+path] {
				t.Errorf("no recorded exchange calls %s %s with success", method, path)
			}
		}
	}
}

// TestDeviationsAreFound changes a correct exchange in one place at a time.
func TestDeviationsAreFound(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	for name, c := range map[string]struct {
		change func(*exchange.Exchange)
		want   string
	}{
		"correct":                 {func(*exchange.Exchange) {}, ""},
		"an unknown member":       {func(x *exchange.Exchange) { x.Answer = replaced(x.Answer, `{`, `{"new": 1, `) }, `property "new" is unsupported`},
		"a missing member":        {func(x *exchange.Exchange) { x.Answer = replaced(x.Answer, `"locks"`, `"lockz"`) }, "locks"},
		"another type":            {func(x *exchange.Exchange) { x.Answer = replaced(x.Answer, `[]`, `{}`) }, "value must be an array"},
		"an undocumented status":  {func(x *exchange.Exchange) { x.Status = http.StatusAccepted }, "status is not supported"},
		"another content type":    {func(x *exchange.Exchange) { x.Received.Set("Content-Type", "text/plain") }, "text/plain"},
		"an unknown path":         {func(x *exchange.Exchange) { x.URL = "http://paddock/v1/new" }, "openapi.yaml does not have it"},
		"a request out of bounds": {func(x *exchange.Exchange) { x.URL += "?limit=1000000" }, "accepted, though"},
		"a problem of no code":    {func(x *exchange.Exchange) { x.Status, x.Answer = 400, []byte(`{"status": 400}`) }, "code"},
		"an event of no kind":     {func(x *exchange.Exchange) { x.Event = json.RawMessage(`{"id": 1}`) }, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := exchange.Exchange{
				Method: http.MethodGet, URL: "http://paddock/v1/locks", Status: http.StatusOK,
				Received: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(`{"locks": []}`),
			}
			c.change(&x)
			_, err := doc.check(t.Context(), x)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}

func replaced(text []byte, old, other string) []byte {
	return []byte(strings.Replace(string(text), old, other, 1))
}
