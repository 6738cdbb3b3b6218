package shell_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

// tourFunctions make curl print the method, the address and the status of each call on the standard error. They end a
// stream, as a reader does with Ctrl-C.
const tourFunctions = `
curl() {
  if [ "$1" = -N ]; then
    timeout --signal=INT 1 curl -sS "$@" && return 1 # it has ended by itself
    return 0
  fi
  command curl -sS -w '%{stderr}%{method} %{url_effective} %{http_code}\n' "$@"
}
`

// TestTheTourWorksFromTopToBottom runs the blocks of docs/tour.md in their order, in one shell. Only the calls that the
// page says are refused may fail.
func TestTheTourWorksFromTopToBottom(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	service := paddock.Start(t, "dev", "--ephemeral", "--listen=127.0.0.1:0")
	url := service.Stdout.Await(t, `Paddock is ready: (\S+)`)
	var script strings.Builder
	script.WriteString(tourFunctions)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		script.WriteString(block[1])
	}
	env := append(os.Environ(), "PATH="+tools.SearchPath(t, "curl"))
	p := shell(t.TempDir(), env, strings.ReplaceAll(script.String(), "http://127.0.0.1:8080", url))
	mustRun(t, p)
	var refused []string
	for line := range strings.Lines(strings.ReplaceAll(p.Stderr.String(), url+"/v1", "")) {
		if line = strings.TrimSpace(line); !regexp.MustCompile(` (200|201|204)$`).MatchString(line) {
			refused = append(refused, line)
		}
	}
	want := []string{
		"POST /locks/repo:src/acquire 409", "POST /locks/jobs:report/acquire 409", "POST /locks/billing:us/acquire 409",
		"POST /locks/uploads:eu/acquire 400", "POST /locks/jobs:hourly/renew 409", "POST /locks/jobs:nightly/acquire 400",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("the calls that failed differ (-want +got):\n%s\n%s", diff, p.Stdout)
	}
	for what, text := range map[string]string{
		"a waiter in the queue": `"waits_for":"worker-1"`, "a batch that renews": `{"results":[{"status":200,`,
		"who has done the work": `"code":"already_done"`, "a lock that is closed": `"closed":{"done_at":`, "the reason of a freeze": `"reason":"database migration"`,
		"a freeze without leases": `"leases":0`, "a rule": `"capacity":5`,
	} {
		if !strings.Contains(p.Stdout.String(), text) {
			t.Errorf("%s was not shown in:\n%s", what, p.Stdout)
		}
	}
}
