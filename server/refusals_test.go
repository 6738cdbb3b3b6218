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
	s := serve(t, server.Options{Locks: inMemory()})
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
		{name: "JSON that is cut short", body: `{"holder": "a"`, pointer: "", detail: "ends too early, after 14 bytes"},
		{name: "a string that is cut short", body: `{"holder": "a`, pointer: "", detail: "ends too early, after 13 bytes"},
		{name: "white space alone", body: "  \n", pointer: "", detail: `is empty. Send a JSON object such as {"holder": ...}`},
		{name: "no body of a revocation", path: "/v1/locks/a/revoke", body: " ", pointer: "", detail: `such as {"fencing_token": ..., "reason": ...}`},
		{name: "no body of a write", method: "PUT", path: "/v1/fenced/k", body: " ", pointer: "", detail: `such as {"fencing_token": ..., "lock": ..., "value": ...}`},
		{name: "a list", body: `[{"holder": "a"}]`, pointer: "", detail: "not a JSON object"},
		{name: "junk after the object", body: `{"holder": "a"} x`, pointer: "", detail: "after its object"},
		{name: "a second object", body: `{"holder": "a"}{"holder": "b"}`, pointer: "", detail: "after its object"},
		{name: "a byte that is not UTF-8", body: "{\"holder\": \"\xff\"}", pointer: "", detail: "is not UTF-8 at byte 12. Send it in UTF-8"},
		{name: "a byte outside a string that is not UTF-8", body: "{\"holder\": \xff}", pointer: "", detail: "is not UTF-8 at byte 11"},
		{name: "UTF-16", body: "\xff\xfe{\x00}\x00", pointer: "", detail: "is not UTF-8 at byte 0"},
		{name: "half a surrogate pair", body: `{"holder": "\ud800"}`, pointer: "", detail: "half of a surrogate pair at byte 12"},
		{name: "the second half of a surrogate pair", body: `{"holder": "a\uDC00"}`, pointer: "", detail: "half of a surrogate pair at byte 13"},
		{name: "an escape that there is not", body: `{"holder": "\ud8zz"}`, pointer: "", detail: "not valid JSON at byte 12"},
		{name: "a body too deep to read", body: `{"metadata": ` + strings.Repeat("[", 10_001), pointer: "", detail: "is nested too deep at byte 10012"},
		{name: "a fault in a deep body", body: `{"metadata": ` + strings.Repeat("[", 9_000) + "x", pointer: "", detail: "not valid JSON at byte 9013"},
		{name: "an unknown member", body: `{"holder": "a", "ttl": 5}`, pointer: "/ttl", detail: "may have capacity, grace_ms, holder"},
		{name: "an unknown member with a slash and a tilde", body: `{"holder": "a", "a/b~c": 5}`, pointer: "/a~1b~0c", detail: "not a member"},
		{name: "a member in another case", body: `{"Holder": "a"}`, pointer: "/Holder", detail: "not a member"},
		{name: "a member twice", body: `{"holder": "a", "holder": "b"}`, pointer: "/holder", detail: "twice"},
		{name: "a member of metadata twice", body: `{"holder": "a", "metadata": {"x": {"y": 1, "y": 2}}}`, pointer: "/metadata/x/y", detail: "metadata/x/y is there twice"},
		{name: "a member twice, escaped", body: `{"holder": "a", "h\u006flder": "a"}`, pointer: "/holder", detail: "twice"},
		{name: "a wrong type before malformed JSON", body: `{"holder": 5, "ttl_ms": 1.}`, pointer: "", detail: "not valid JSON at byte 26"},
		{name: "a byte order mark", body: "\ufeff" + `{"holder": "a"}`, pointer: "", detail: "has a byte order mark at byte 0. Remove it"},
		{name: "a keep_place of 1", body: `{"holder": "a", "keep_place": 1}`, pointer: "/keep_place", detail: "must be true or false"},
		{name: "a write for slot 0", method: "PUT", path: "/v1/fenced/k", body: `{"lock": "a", "fencing_token": 1, "value": 1, "slot": 0}`, pointer: "/slot", detail: "is 0; give 1 to 1000"},
		{name: "a write with an empty operation_id", method: "PUT", path: "/v1/fenced/k", body: `{"lock": "a", "fencing_token": 1, "value": 1, "operation_id": ""}`, pointer: "/operation_id", detail: "is empty; give 1 to 200 characters"},
		{name: "a write with a long operation_id", method: "PUT", path: "/v1/fenced/k", body: `{"lock": "a", "fencing_token": 1, "value": 1, "operation_id": "` + strings.Repeat("ä", 201) + `"}`, pointer: "/operation_id", detail: "201 characters"},
		{name: "a write of a deep value", method: "PUT", path: "/v1/fenced/k", body: `{"lock": "a", "fencing_token": 1, "value": ` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}`,
			pointer: "/value", detail: "flatter"},
		{name: "an acquired_at that is a number", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "reason": "r", "acquired_at": 1767323045}`, pointer: "/acquired_at", detail: "RFC 3339"},
		{name: "an acquired_at without a time zone", path: "/v1/locks/a/revoke", body: `{"fencing_token": 1, "reason": "r", "acquired_at": "2026-01-02T03:04:05"}`,
			pointer: "/acquired_at", detail: "must be an instant"},
		{name: "no holder", body: `{}`, pointer: "/holder", detail: "holder is missing"},
		{name: "a null holder", body: `{"holder": null}`, pointer: "/holder", detail: "is null; give it a value."},
		{name: "a null ttl_ms", body: `{"holder": "a", "ttl_ms": null}`, pointer: "/ttl_ms", detail: "leave it out"},
		{name: "a holder that is a number", body: `{"holder": 5}`, pointer: "/holder", detail: "must be a string"},
		{name: "a mode that there is not", body: `{"holder": "a", "mode": "write"}`, pointer: "/mode", detail: "use exclusive, shared or permit"},
		{name: "a lease_id that is no UUID", body: `{"holder": "a", "lease_id": "mine"}`, pointer: "/lease_id", detail: "must be a UUID"},
		{name: "a lease_id in braces", body: `{"holder": "a", "lease_id": "{` + leaseID + `}"}`, pointer: "/lease_id", detail: "must be a UUID"},
		{name: "a lease_id without dashes", body: `{"holder": "a", "lease_id": "5e0c7a0e6d6e4b0f9e0b0d8d2c5b6a11"}`, pointer: "/lease_id", detail: "8-4-4-4-12"},
		{name: "a lease_id of zeros", body: `{"holder": "a", "lease_id": "00000000-0000-0000-0000-000000000000"}`, pointer: "/lease_id", detail: "give a random UUID"},
		{name: "metadata that is too deep", body: `{"holder": "a", "metadata": {"x": ` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`, pointer: "/metadata", detail: "flatter"},
		{name: "metadata with a number that is no float64", body: `{"holder": "a", "metadata": {"x": [1e99999]}}`, pointer: "/metadata", detail: "64-bit float"},
	})
}

func TestNumbersAreReadStrictly(t *testing.T) {
	t.Parallel()
	ttl := func(v string) string { return `{"holder": "a", "ttl_ms": ` + v + `}` }
	wantBadRequests(t, []badRequest{
		{name: "a ttl_ms of zero", body: ttl("0"), pointer: "/ttl_ms", detail: "is 0; give 100 to 86400000"},
		{name: "a ttl_ms of 1e30", body: ttl("1e30"), pointer: "/ttl_ms", detail: "is 1e30; give a whole number of at most 64 bits."},
		{name: "a ttl_ms with a fraction", body: ttl("1.5"), pointer: "/ttl_ms", detail: "is 1.5; give a whole number of at most 64 bits."},
		{name: "a ttl_ms beyond 64 bits", body: ttl("99999999999999999999"), pointer: "/ttl_ms", detail: "is 99999999999999999999; give a whole number of at most 64 bits."},
		{name: "the greatest 64-bit ttl_ms", body: ttl("9223372036854775807"), pointer: "/ttl_ms", detail: "is 9223372036854775807; give 100 to 86400000"},
		{name: "a ttl_ms that would overflow to a good one", body: ttl("18446744103710"), pointer: "/ttl_ms", detail: "is 18446744103710; give 100 to 86400000"},
		{name: "a ttl_ms above 2^53", body: ttl("9007199254740993"), pointer: "/ttl_ms", detail: "is 9007199254740993; give 100 to 86400000"},
		{name: "a ttl_ms that is a string", body: ttl(`"30000"`), pointer: "/ttl_ms", detail: "must be a whole number"},
		{name: "a max_hold_ms of zero", body: `{"holder": "a", "max_hold_ms": 0}`, pointer: "/max_hold_ms", detail: "leave it out"},
		{name: "permits without a capacity", body: `{"holder": "a", "mode": "permit"}`, pointer: "/capacity", detail: "is missing; give 1 to 1000, the number of permits."},
		{name: "permits of capacity zero", body: `{"holder": "a", "mode": "permit", "capacity": 0}`, pointer: "/capacity", detail: "is 0; give 1 to 1000, the number of permits."},
		{name: "a capacity of zero beside another mode", body: `{"holder": "a", "mode": "shared", "capacity": 0}`, pointer: "/capacity", detail: "only valid with mode permit; leave it out"},
		{name: "the least 64-bit grace_ms", body: `{"holder": "a", "grace_ms": -9223372036854775808}`, pointer: "/grace_ms", detail: "is -9223372036854775808; give 0 to 60000"},
	})
}

func TestNamesInThePath(t *testing.T) {
	t.Parallel()
	at := func(segment string) string { return "/v1/locks/" + segment + "/acquire" }
	body := `{"holder": "a"}`
	wantBadRequests(t, []badRequest{
		{name: "201 characters", path: at(strings.Repeat("n", 201)), body: body, pointer: "name", detail: "201 bytes; at most 200"},
		{name: "an encoded slash", path: at("a%2Fb"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "an encoded slash alone", path: "/v1/locks/%2F", pointer: "name", detail: "must begin"},
		{name: "a zero byte", path: at("a%00"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "bytes that are not UTF-8", path: at("a%ff"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "a name that was encoded twice after a letter", path: at("a%253Ab"), body: body, pointer: "name", detail: "invalid character at byte 1"},
		{name: "no name", path: "/v1/locks//acquire", body: body, pointer: "name", detail: "is empty"},
		{name: "two dots", path: "/v1/locks/%2E%2E/acquire", body: body, pointer: "name", detail: "must begin"},
		{name: "a key that cannot be", path: "/v1/fenced/a%20b", pointer: "key", detail: "key has an invalid character"},
	})
}

func TestQueriesAreReadStrictly(t *testing.T) {
	t.Parallel()
	wantBadRequests(t, []badRequest{
		{name: "an unknown parameter", path: "/v1/locks?colour=red", pointer: "colour", detail: "which has contains, contended, cursor, holder"},
		{name: "a parameter in another case", path: "/v1/events?Limit=1", pointer: "Limit", detail: "is not a parameter"},
		{name: "a parameter where there are none", path: "/v1/locks/a/queue?limit=1", pointer: "limit", detail: "has none"},
		{name: "a parameter beside a body", path: acquirePath + "?holder=b", body: `{"holder": "a"}`, pointer: "holder", detail: "has none"},
		{name: "a query beside a body that cannot be read", path: acquirePath + "?%zz", body: `{}`, detail: "Percent-encode"},
		{name: "a parameter twice", path: "/v1/locks?limit=1&limit=2", pointer: "limit", detail: "there 2 times"},
		{name: "a limit that is no number", path: "/v1/locks?limit=abc", pointer: "limit", detail: "must be a whole number"},
		{name: "a filter that is neither true nor false", path: "/v1/locks?contended=maybe", pointer: "contended", detail: "must be true or false"},
		{name: "an empty limit", path: "/v1/events?limit=", pointer: "limit", detail: "must be a whole number"},
		{name: "a limit with an exponent", path: "/v1/events?limit=3e1", pointer: "limit", detail: "must be a whole number in digits"},
		{name: "a limit beyond 64 bits", path: "/v1/events?limit=99999999999999999999", pointer: "limit", detail: "must be a whole number"},
		{name: "a limit of zero", path: "/v1/locks?limit=0", pointer: "limit", detail: "is 0; give 1 to 1000"},
		{name: "a state that there is not", path: "/v1/locks?state=open", pointer: "state", detail: "free, held, grace or suspect"},
		{name: "an empty lock", path: "/v1/events?lock=", pointer: "lock", detail: "is empty"},
		{name: "a look that waits too long", path: "/v1/locks/a?wait_ms=50001", pointer: "wait_ms", detail: "is 50001; give 0 to 50000"},
		{name: "a since that is no instant", path: "/v1/events?since=yesterday", pointer: "since", detail: "must be an instant such as 2026"},
		{name: "an until with a space for a plus", path: "/v1/events?until=2026-01-02T03:04:05+01:00", pointer: "until", detail: "%2B"},
		{name: "an order that there is not", path: "/v1/events?order=newest", pointer: "order", detail: "asc for the oldest event first"},
		{name: "a kind that there is not", path: "/v1/events?kind=granted,lost", pointer: "kind", detail: "give granted, released"},
		{name: "holds at no instant", path: "/v1/locks/a/holds?at=03:12", pointer: "at", detail: "must be an instant"},
		{name: "a wait of the least 64-bit integer", path: "/v1/events?wait_ms=-9223372036854775808", pointer: "wait_ms", detail: "is too small; give 0 to 50000"},
		{name: "a stream with the browser's own parameter", path: "/v1/events/stream?lastEventId=1", pointer: "lastEventId", detail: "which has cursor, lock, prefix"},
		{name: "a stream of an empty lock", path: "/v1/events/stream?lock=", pointer: "lock", detail: "is empty"},
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
