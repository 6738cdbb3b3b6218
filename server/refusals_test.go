package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

const acquirePath = "/v1/locks/jobs:nightly/acquire"

// A badRequest is a request and the problem that must answer it.
type badRequest struct {
	name    string
	method  string // empty: POST with a body, GET without
	path    string // empty: acquirePath
	body    string
	status  int // zero: 400
	code    string
	pointer any // nil: none
	detail  string
}

func (b badRequest) run(t *testing.T, s harness) {
	t.Helper()
	if b.path == "" {
		b.path = acquirePath
	}
	if b.method == "" && b.body == "" {
		b.method = http.MethodGet
	} else if b.method == "" {
		b.method = http.MethodPost
	}
	if b.status == 0 {
		b.status, b.code = http.StatusBadRequest, "invalid_request"
	}
	s.t = t
	s.client = &http.Client{Transport: contract{t, s.client.Transport.(contract).next}, CheckRedirect: s.client.CheckRedirect}
	got := s.send(b.method, b.path, b.body)
	got.want(t, b.status, map[string]any{"code": b.code, "pointer": b.pointer})
	if detail, _ := got.body["detail"].(string); !strings.Contains(detail, b.detail) {
		t.Errorf("detail %q does not say %q", detail, b.detail)
	}
}

func wantBadRequests(t *testing.T, cases []badRequest) {
	t.Helper()
	s := serve(t, server.Options{Locks: &fake{}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

func TestBodyIsReadStrictly(t *testing.T) {
	t.Parallel()
	wantBadRequests(t, []badRequest{
		{name: "text that is not JSON", body: `holder=a`, pointer: "", detail: "not valid JSON at byte 0"},
		{name: "a member where there is no body", method: "PUT", path: "/v1/trees/a", body: `{"grace_ms": 1}`, pointer: "/grace_ms", detail: "this call has no body"},
		{name: "a member of a removal", method: "DELETE", path: "/v1/trees/a", body: `{"force": true}`, pointer: "/force", detail: "this call has no body"},
		{name: "a member of a look", method: "GET", path: "/v1/locks?limit=1", body: `{"prefix": "a"}`, pointer: "/prefix", detail: "this call has no body"},
		{name: "a list where there is no body", method: "PUT", path: "/v1/trees/a", body: `["b"]`, pointer: "", detail: "is not a JSON object"},
		{name: "JSON that is cut short", body: `{"holder": "a"`, pointer: "", detail: "not valid JSON"},
		{name: "white space alone", body: "  \n", pointer: "", detail: "is empty. Send"},
		{name: "null", body: `null`, pointer: "", detail: "not a JSON object"},
		{name: "a list", body: `[{"holder": "a"}]`, pointer: "", detail: "not a JSON object"},
		{name: "a string", body: `"a"`, pointer: "", detail: "not a JSON object"},
		{name: "junk after the object", body: `{"holder": "a"} x`, pointer: "", detail: "after its object"},
		{name: "a second object", body: `{"holder": "a"}{"holder": "b"}`, pointer: "", detail: "after its object"},
		{name: "a byte that is not UTF-8", body: "{\"holder\": \"\xff\"}", pointer: "", detail: "UTF-8"},
		{name: "half a surrogate pair", body: `{"holder": "\ud800"}`, pointer: "", detail: "UTF-8"},
		{name: "an unknown member", body: `{"holder": "a", "ttl": 5}`, pointer: "/ttl", detail: "may have capacity, grace_ms, holder"},
		{name: "an unknown member with a slash and a tilde", body: `{"holder": "a", "a/b~c": 5}`, pointer: "/a~1b~0c", detail: "not a member"},
		{name: "the name in the body, too", body: `{"holder": "a", "name": "b"}`, pointer: "/name", detail: "is not a member"},
		{name: "a member in another case", body: `{"Holder": "a"}`, pointer: "/Holder", detail: "not a member"},
		{name: "a member twice", body: `{"holder": "a", "holder": "b"}`, pointer: "/holder", detail: "twice"},
		{name: "a member of metadata twice", body: `{"holder": "a", "metadata": {"x": {"y": 1, "y": 2}}}`, pointer: "/metadata/x/y", detail: "metadata/x/y is there twice"},
		{name: "a member twice, escaped", body: `{"holder": "a", "h\u006flder": "a"}`, pointer: "/holder", detail: "twice"},
		{name: "a member twice inside a member of another type", body: `{"holder": {"x": 1, "x": 2}}`, pointer: "/holder/x", detail: "twice"},
		{name: "a wrong type before malformed JSON", body: `{"holder": 5, "ttl_ms": 1.}`, pointer: "", detail: "not valid JSON at byte 26"},
		{name: "a byte order mark", body: "\ufeff" + `{"holder": "a"}`, pointer: "", detail: "not valid JSON at byte 0"},
		{name: "a former name", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "reason": "r", "at_once": true}`, pointer: "/at_once",
			detail: "which may have acquired_at, fencing_token, reason, skip_grace, slot"},
		{name: "a keep_place of 1", body: `{"holder": "a", "keep_place": 1}`, pointer: "/keep_place", detail: "must be true or false"},
		{name: "a task_id that is a list", body: `{"holder": "a", "task_id": ["t"]}`, pointer: "/task_id", detail: "must be a string"},
		{name: "an acquired_at without a time zone", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "reason": "r", "acquired_at": "2026-01-02T03:04:05"}`,
			pointer: "/acquired_at", detail: "must be an instant"},
		{name: "a null member of metadata twice", body: `{"holder": "a", "metadata": {"x": null, "x": null}}`, pointer: "/metadata/x",
			detail: "twice"},
		{name: "no holder", body: `{}`, pointer: "/holder", detail: "holder is missing"},
		{name: "a null holder", body: `{"holder": null}`, pointer: "/holder", detail: "is null; give it a value."},
		{name: "a null ttl_ms", body: `{"holder": "a", "ttl_ms": null}`, pointer: "/ttl_ms", detail: "leave it out"},
		{name: "null metadata", body: `{"holder": "a", "metadata": null}`, pointer: "/metadata", detail: "leave it out"},
		{name: "a null lease_id", body: `{"holder": "a", "lease_id": null}`, pointer: "/lease_id", detail: "leave it out"},
		{name: "a holder that is a number", body: `{"holder": 5}`, pointer: "/holder", detail: "must be a string"},
		{name: "a mode that is an object", body: `{"holder": "a", "mode": {}}`, pointer: "/mode", detail: "must be a string"},
		{name: "a mode that there is not", body: `{"holder": "a", "mode": "write"}`, pointer: "/mode", detail: "use exclusive, shared or permit"},
		{name: "an empty mode", body: `{"holder": "a", "mode": ""}`, pointer: "/mode", detail: "use exclusive"},
		{name: "a lease_id that is no UUID", body: `{"holder": "a", "lease_id": "mine"}`, pointer: "/lease_id", detail: "must be a UUID"},
		{name: "a lease_id that is a number", body: `{"holder": "a", "lease_id": 5}`, pointer: "/lease_id", detail: "must be a UUID"},
		{name: "a lease_id in braces", body: `{"holder": "a", "lease_id": "{` + leaseID + `}"}`, pointer: "/lease_id", detail: "must be a UUID"},
		{name: "a lease_id without dashes", body: `{"holder": "a", "lease_id": "5e0c7a0e6d6e4b0f9e0b0d8d2c5b6a11"}`, pointer: "/lease_id", detail: "8-4-4-4-12"},
		{name: "a lease_id of zeros", body: `{"holder": "a", "lease_id": "00000000-0000-0000-0000-000000000000"}`, pointer: "/lease_id", detail: "give a random UUID"},
		{name: "metadata that is a list", body: `{"holder": "a", "metadata": []}`, pointer: "/metadata", detail: "must be a JSON object"},
		{name: "metadata that is too large", body: `{"holder": "a", "metadata": {"x": "` + strings.Repeat("x", 4096) + `"}}`, pointer: "/metadata", detail: "4096"},
		{name: "metadata that is too deep", body: `{"holder": "a", "metadata": {"x": ` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`, pointer: "/metadata", detail: "flatter"},
		{name: "a holder with a control character", body: `{"holder": "a\u0000"}`, pointer: "/holder", detail: "control character"},
		{name: "a holder of spaces", body: `{"holder": "  "}`, pointer: "/holder", detail: "no visible character"},
		{name: "a holder that begins with a bidirectional override", body: `{"holder": "\u202eroot"}`, pointer: "/holder", detail: "U+202E; remove it"},
		{name: "a holder that is invisible", body: `{"holder": "\u3164\u200b"}`, pointer: "/holder", detail: "no visible character"},
		{name: "metadata with a number that is no float64", body: `{"holder": "a", "metadata": {"x": [1e99999]}}`, pointer: "/metadata", detail: "64-bit float"},
		{name: "a holder of 201 characters", body: `{"holder": "` + strings.Repeat("é", 201) + `"}`, pointer: "/holder", detail: "201 characters"},
	})
}

func TestNumbersAreReadStrictly(t *testing.T) {
	t.Parallel()
	ttl := func(v string) string { return `{"holder": "a", "ttl_ms": ` + v + `}` }
	wantBadRequests(t, []badRequest{
		{name: "a ttl_ms of zero", body: ttl("0"), pointer: "/ttl_ms", detail: "is 0; give 100 to 86400000"},
		{name: "a negative ttl_ms", body: ttl("-5"), pointer: "/ttl_ms", detail: "is -5; give 100 to 86400000"},
		{name: "a ttl_ms below the bounds", body: ttl("99"), pointer: "/ttl_ms", detail: "give 100 to 86400000"},
		{name: "a ttl_ms of 1e30", body: ttl("1e30"), pointer: "/ttl_ms", detail: "is 1e30, but must be a whole number"},
		{name: "a ttl_ms with a fraction", body: ttl("1.5"), pointer: "/ttl_ms", detail: "is 1.5, but must be a whole number"},
		{name: "a ttl_ms beyond 64 bits", body: ttl("99999999999999999999"), pointer: "/ttl_ms", detail: "is 99999999999999999999, but"},
		{name: "the greatest 64-bit ttl_ms", body: ttl("9223372036854775807"), pointer: "/ttl_ms", detail: "is 9223372036854775807; give 100 to 86400000"},
		{name: "a ttl_ms that would overflow to a good one", body: ttl("18446744103710"), pointer: "/ttl_ms", detail: "is 18446744103710; give 100 to 86400000"},
		{name: "a ttl_ms above 2^53", body: ttl("9007199254740993"), pointer: "/ttl_ms", detail: "is 9007199254740993; give 100 to 86400000"},
		{name: "a ttl_ms of a Duration", body: ttl("9223372036853"), pointer: "/ttl_ms", detail: "is 9223372036853; give 100 to 86400000"},
		{name: "a max_hold_ms above 2^53", body: `{"holder": "a", "max_hold_ms": 9007199254740993}`, pointer: "/max_hold_ms", detail: "is 9007199254740993; give 100"},
		{name: "a ttl_ms of a session above 2^53", path: "/v1/sessions", body: ttl("9007199254740993"), pointer: "/ttl_ms", detail: "is 9007199254740993; give"},
		{name: "a ttl_ms that is a string", body: ttl(`"30000"`), pointer: "/ttl_ms", detail: "must be a whole number"},
		{name: "a ttl_ms that is true", body: ttl("true"), pointer: "/ttl_ms", detail: "must be a whole number"},
		{name: "a max_hold_ms of zero", body: `{"holder": "a", "max_hold_ms": 0}`, pointer: "/max_hold_ms", detail: "leave it out"},
		{name: "a negative grace_ms", body: `{"holder": "a", "grace_ms": -1}`, pointer: "/grace_ms", detail: "give 0 to 60000"},
		{name: "the least 64-bit grace_ms", body: `{"holder": "a", "grace_ms": -9223372036854775808}`, pointer: "/grace_ms", detail: "is -9223372036854775808; give 0 to 60000"},
		{name: "a renewal with a ttl_ms of zero", path: "/v1/locks/a/renew", body: `{"lease_id": "` + leaseID + `", "ttl_ms": 0}`, pointer: "/ttl_ms", detail: "is 0"},
	})
}

func TestEveryBodyIsRead(t *testing.T) {
	t.Parallel()
	fenced := "/v1/fenced/accounts:42"
	wantBadRequests(t, []badRequest{
		{name: "a renewal without lease_id", path: "/v1/locks/a/renew", body: `{}`, pointer: "/lease_id", detail: "is missing"},
		{name: "a renewal with zeros", path: "/v1/locks/a/renew", body: `{"lease_id": "00000000-0000-0000-0000-000000000000"}`, pointer: "/lease_id", detail: "that acquire returned"},
		{name: "a release without lease_id", path: "/v1/locks/a/release", body: `{}`, pointer: "/lease_id", detail: "is missing"},
		{name: "a revocation without token", path: "/v1/locks/a/revoke", body: `{"reason": "x"}`, pointer: "/fencing_token", detail: "is missing"},
		{name: "a revocation without reason", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1}`, pointer: "/reason", detail: "is missing"},
		{name: "a revocation with a blank reason", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "reason": "\u2003"}`, pointer: "/reason", detail: "no visible character"},
		{name: "a write of a number that is no float64", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1, "value": 1e99999}`, pointer: "/value", detail: "64-bit float"},
		{name: "a renewal with a number that is no float64", path: "/v1/locks/a/renew", body: `{"lease_id": "` + leaseID + `", "metadata": {"x": 1e99999}}`, pointer: "/metadata", detail: "64-bit float"},
		{name: "a revocation of token 0", path: "/v1/locks/a/revoke", body: `{"fencing_token": 0, "reason": "x"}`, pointer: "/fencing_token", detail: "give 1 to"},
		{name: "a revocation of slot 1001", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "slot": 1001, "reason": "x"}`, pointer: "/slot", detail: "give 0 to 1000"},
		{name: "a question for slot -1", path: "/v1/tokens/verify", body: `{"name": "a", "fencing_token": 1, "slot": -1}`, pointer: "/slot", detail: "give 0 to 1000"},
		{name: "a write for slot 0", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1, "value": 1, "slot": 0}`, pointer: "/slot", detail: "is 0; give 1 to 1000"},
		{name: "a write for slot 1001", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1, "value": 1, "slot": 1001}`, pointer: "/slot", detail: "is 1001; give"},
		{name: "a question without name", path: "/v1/tokens/verify", body: `{"fencing_token": 1}`, pointer: "/name", detail: "is missing"},
		{name: "a question with a bad name", path: "/v1/tokens/verify", body: `{"name": "a/b", "fencing_token": 1}`, pointer: "/name", detail: "at byte 1"},
		{name: "a write without value", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1}`, pointer: "/value", detail: "is missing"},
		{name: "a write with a bad lock", method: "PUT", path: fenced, body: `{"lock": "", "fencing_token": 1, "value": 1}`, pointer: "/lock", detail: "is empty"},
		{name: "a write of a deep value", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1, "value": ` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}`, pointer: "/value", detail: "flatter"},
		{name: "a write at version -1", method: "PUT", path: fenced, body: `{"lock": "a", "fencing_token": 1, "value": 1, "if_version": -1}`, pointer: "/if_version", detail: "0 or more"},
		{name: "a write to a key that cannot be", method: "PUT", path: "/v1/fenced/-a", body: `{}`, pointer: "key", detail: "key must begin"},
	})
}

func TestNamesInThePath(t *testing.T) {
	t.Parallel()
	at := func(segment string) string { return "/v1/locks/" + segment + "/acquire" }
	body := `{"holder": "a"}`
	wantBadRequests(t, []badRequest{
		{name: "201 characters", path: at(strings.Repeat("n", 201)), body: body, pointer: "name", detail: "201 bytes; at most 200"},
		{name: "an encoded slash", path: at("a%2Fb"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "an encoded slash in lower case", path: at("a%2fb"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "an encoded slash beside an encoded colon", path: at("a%3Ab%2Fc"), body: body, pointer: "name", detail: "invalid character"},
		{name: "an encoded slash alone", path: "/v1/locks/%2F", pointer: "name", detail: "must begin"},
		{name: "a control character", path: at("a%0Ab"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "a zero byte", path: at("a%00"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "a space", path: at("a%20b"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "a plus", path: at("a+b"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "bytes that are not UTF-8", path: at("a%ff"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "a name that was encoded twice", path: at("%2541"), body: body, pointer: "name", detail: "must begin"},
		{name: "a name that was encoded twice after a letter", path: at("a%253Ab"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "no name", path: "/v1/locks//acquire", body: body, pointer: "name", detail: "is empty"},
		{name: "two dots", path: "/v1/locks/%2E%2E/acquire", body: body, pointer: "name", detail: "must begin"},
		{name: "a look at a name that cannot be", path: "/v1/locks/a,b", pointer: "name", detail: "invalid character at byte 1"},
		{name: "a key that cannot be", path: "/v1/fenced/a%20b", pointer: "key", detail: "key has an invalid character"},
	})
}

func TestQueriesAreReadStrictly(t *testing.T) {
	t.Parallel()
	wantBadRequests(t, []badRequest{
		{name: "an unknown parameter", path: "/v1/locks?colour=red", pointer: "colour", detail: "which has contains, contended, cursor, holder"},
		{name: "a parameter of another call", path: "/v1/locks?lock=a", pointer: "lock", detail: "is not a parameter"},
		{name: "a parameter in another case", path: "/v1/events?Limit=1", pointer: "Limit", detail: "is not a parameter"},
		{name: "a parameter where there are none", path: "/v1/locks/a/queue?limit=1", pointer: "limit", detail: "has none"},
		{name: "a parameter beside a body", path: acquirePath + "?holder=b", body: `{"holder": "a"}`, pointer: "holder", detail: "has none"},
		{name: "a query beside a body that cannot be read", path: acquirePath + "?%zz", body: `{}`, detail: "Percent-encode"},
		{name: "a parameter twice", path: "/v1/locks?limit=1&limit=2", pointer: "limit", detail: "there 2 times"},
		{name: "a limit that is no number", path: "/v1/locks?limit=abc", pointer: "limit", detail: "must be a whole number"},
		{name: "a filter that is neither true nor false", path: "/v1/locks?contended=maybe", pointer: "contended", detail: "must be true or false"},
		{name: "a filter that is 1", path: "/v1/locks?contended=1", pointer: "contended", detail: "must be true or false"},
		{name: "a since that is a date", path: "/v1/events?since=2026-01-02", pointer: "since", detail: "must be an instant such as 2026"},
		{name: "an empty limit", path: "/v1/events?limit=", pointer: "limit", detail: "must be a whole number"},
		{name: "a limit with an exponent", path: "/v1/events?limit=3e1", pointer: "limit", detail: "must be a whole number in digits"},
		{name: "a limit with a fraction", path: "/v1/events?limit=1.5", pointer: "limit", detail: "must be a whole number"},
		{name: "a limit beyond 64 bits", path: "/v1/events?limit=99999999999999999999", pointer: "limit", detail: "must be a whole number"},
		{name: "a limit of zero", path: "/v1/locks?limit=0", pointer: "limit", detail: "is 0; give 1 to 1000"},
		{name: "a negative limit", path: "/v1/events?limit=-1", pointer: "limit", detail: "is -1; give 1 to 1000"},
		{name: "a limit that is too large", path: "/v1/locks?limit=1001", pointer: "limit", detail: "give 1 to 1000"},
		{name: "a state that there is not", path: "/v1/locks?state=open", pointer: "state", detail: "free, held or grace"},
		{name: "an empty state", path: "/v1/locks?state=", pointer: "state", detail: "is empty"},
		{name: "an empty lock", path: "/v1/events?lock=", pointer: "lock", detail: "is empty"},
		{name: "an empty holder", path: "/v1/locks?holder=", pointer: "holder", detail: "is empty"},
		{name: "a lock that cannot be", path: "/v1/events?lock=a%2Fb", pointer: "lock", detail: "at byte 1"},
		{name: "a prefix that cannot be", path: "/v1/locks?prefix=:a", pointer: "prefix", detail: "must begin"},
		{name: "a lock and a prefix", path: "/v1/events?lock=a&prefix=b", pointer: "prefix", detail: "cannot be combined with lock"},
		{name: "a look that waits too long", path: "/v1/locks/a?wait_ms=50001", pointer: "wait_ms", detail: "is 50001; give 0 to 50000"},
		{name: "a since that is no instant", path: "/v1/events?since=yesterday", pointer: "since", detail: "must be an instant such as 2026"},
		{name: "an until with a space for a plus", path: "/v1/events?until=2026-01-02T03:04:05+01:00", pointer: "until", detail: "%2B"},
		{name: "an until before the since", path: "/v1/events?since=2026-01-02T03:04:05Z&until=2026-01-02T03:04:04Z", pointer: "until", detail: "is not after since"},
		{name: "a wait until", path: "/v1/events?until=2026-01-02T03:04:05Z&wait_ms=1", pointer: "wait_ms", detail: "cannot be combined with until"},
		{name: "a wait for the newest first", path: "/v1/events?order=desc&wait_ms=1", pointer: "wait_ms", detail: "cannot be combined with the order desc"},
		{name: "now, and the newest first", path: "/v1/events?order=desc&cursor=now", pointer: "cursor", detail: "leave it out to begin with the newest"},
		{name: "an order that there is not", path: "/v1/events?order=newest", pointer: "order", detail: "asc for the oldest event first"},
		{name: "an empty order", path: "/v1/events?order=", pointer: "order", detail: "asc for the oldest"},
		{name: "a kind that there is not", path: "/v1/events?kind=granted,lost", pointer: "kind", detail: "give granted, released"},
		{name: "an empty kind", path: "/v1/events?kind=", pointer: "kind", detail: "give granted"},
		{name: "events of an empty holder", path: "/v1/events?holder=", pointer: "holder", detail: "is empty"},
		{name: "events of a holder that is too long", path: "/v1/events?holder=" + strings.Repeat("h", 201), pointer: "holder", detail: "200"},
		{name: "holds at no instant", path: "/v1/locks/a/holds?at=03:12", pointer: "at", detail: "must be an instant"},
		{name: "holds at an instant and until one", path: "/v1/locks/a/holds?at=2026-01-02T03:04:05Z&until=2026-01-02T03:04:05Z", pointer: "until", detail: "cannot be combined with at"},
		{name: "holds with a limit of zero", path: "/v1/locks/a/holds?limit=0", pointer: "limit", detail: "is 0"},
		{name: "holds with a parameter that there is not", path: "/v1/locks/a/holds?since=1", pointer: "since", detail: "which has at, limit, until"},
		{name: "a query that cannot be read", path: "/v1/locks?prefix=%zz", detail: "Percent-encode"},
		{name: "a semicolon", path: "/v1/locks?prefix=a;limit=1", detail: "Percent-encode"},
	})
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	missing := func(name, path string) badRequest {
		return badRequest{name: name, path: path, status: http.StatusNotFound, code: "no_route", detail: "/docs/"}
	}
	wantBadRequests(t, []badRequest{
		missing("an unknown address", "/v1/lock"),
		missing("a version that there is not", "/v2/locks"),
		missing("a slash too many", "/v1/locks/a/"),
		missing("a slash inside a name", "/v1/locks/a/b"),
		missing("a list with a slash", "/v1/locks/"),
		missing("an address in another case", "/V1/locks"),
		missing("an encoded slash between segments", "/v1%2Flocks"),
		missing("a file of the docs that there is not", "/docs/swagger-ui.js"),
		missing("a page that is not served", "/ui/"),
		{name: "an unknown method at an unknown address", method: "BREW", path: "/pot", status: http.StatusNotFound, code: "no_route"},
	})
}
