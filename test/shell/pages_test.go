package shell_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

// curlrc makes curl print the method, the address and the status of each call that ends on the standard error.
const curlrc = `
silent
show-error
write-out = "%{stderr}CALL %{method} %{url_effective} %{http_code}\n"
`

// TestPagesWorkFromTopToBottom runs the blocks of the pages that newcomers copy from. Only the calls that a page says are
// refused may fail.
func TestPagesWorkFromTopToBottom(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]struct {
		refused []string
		shown   map[string]string // what is told by which text
	}{
		"README.md": {shown: map[string]string{
			"a lease": `"fencing_token":`, "the write": `"balance":100`, "a stale write": "stale_token",
			"a command under a lock": "your own command, with the token ",
		}},
		"docs/tour.md": {
			refused: []string{
				"POST /locks/repo:src/acquire 409", "POST /locks/jobs:report/acquire 409", "POST /locks/billing:us/acquire 409",
				"POST /locks/uploads:eu/acquire 400", "POST /locks/jobs:hourly/renew 409", "POST /locks/jobs:nightly/acquire 400",
			},
			shown: map[string]string{
				"a waiter in the queue": `"waits_for":"worker-1"`, "a batch that renews": `{"results":[{"status":200,`,
				"who has done the work": `"code":"already_done"`, "a lock that is closed": `"closed":{"done_at":`,
				"the reason of a freeze": `"reason":"database migration"`, "a freeze without leases": `"leases":0`, "a rule": `"capacity":5`,
				"an event of the stream": "event: released", "the reason of a revocation": "db-3 is being replaced",
			},
		},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			stdout, refused := runPage(t, page)
			if diff := cmp.Diff(want.refused, refused); diff != "" {
				t.Errorf("the calls that failed differ (-want +got):\n%s\n%s", diff, stdout)
			}
			for what, text := range want.shown {
				if !strings.Contains(stdout, text) {
					t.Errorf("%s was not shown in:\n%s", what, stdout)
				}
			}
		})
	}
}

// runPage runs the blocks of a page as they are printed, in their order and in one shell, but with the address of a
// service that it starts at the block "paddock dev". The blocks before that one install what is there already. It returns
// the output, and the calls of curl that were refused.
func runPage(t *testing.T, page string) (stdout string, refused []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```sh\npaddock dev\n```")
	if !ok {
		t.Fatalf("%s has no block paddock dev", page)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(rest, -1) {
		script.WriteString(block[1])
	}
	url := paddock.Start(t, "dev", "--ephemeral", "--listen=127.0.0.1:0").Stdout.Await(t, `Paddock is ready: (\S+)`)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".curlrc"), []byte(curlrc), 0o600); err != nil {
		t.Fatal(err)
	}
	p := shell(dir, append(os.Environ(), "CURL_HOME="+dir, "PADDOCK_URL="+url,
		"PATH="+filepath.Dir(paddock.Path(t))+":"+tools.SearchPath(t, "curl")), strings.ReplaceAll(script.String(), "http://127.0.0.1:8080", url))
	mustRun(t, p)
	for line := range strings.Lines(strings.ReplaceAll(p.Stderr.String(), url+"/v1", "")) {
		if call, ok := strings.CutPrefix(strings.TrimSpace(line), "CALL "); ok && !regexp.MustCompile(` (200|201|204)$`).MatchString(call) {
			refused = append(refused, call)
		}
	}
	return p.Stdout.String(), refused
}
