package server_test

import "testing"

func TestWhatIsAskedOfAQueueIsReadStrictly(t *testing.T) {
	t.Parallel()
	wantBadRequests(t, []badRequest{
		{name: "a mode in capitals", body: `{"holder": "a", "mode": "Shared"}`, pointer: "/mode", detail: "use exclusive, shared or permit"},
		{name: "the mode that the service calls none", body: `{"holder": "a", "mode": "unknown"}`, pointer: "/mode", detail: "use exclusive"},
		{name: "a keep_place that is a number", body: `{"holder": "a", "keep_place": 1}`, pointer: "/keep_place", detail: "must be true or false"},
		{name: "a keep_place that is a string", body: `{"holder": "a", "keep_place": "true"}`, pointer: "/keep_place", detail: "must be true or false"},
		{name: "a null keep_place", body: `{"holder": "a", "keep_place": null}`, pointer: "/keep_place", detail: "leave it out"},
		{name: "a keep_place without a lease_id", body: `{"holder": "a", "keep_place": true}`, pointer: "/keep_place", detail: "requires a lease_id"},
		{name: "a capacity without permits", body: `{"holder": "a", "capacity": 3}`, pointer: "/capacity", detail: "is only valid with mode permit"},
		{name: "a capacity of zero without permits", body: `{"holder": "a", "capacity": 0}`, pointer: "/capacity", detail: "is 0; give 1 to 1000"},
		{name: "a permit without a capacity", body: `{"holder": "a", "mode": "permit"}`, pointer: "/capacity", detail: "give 1 to 1000"},
		{name: "a negative wait_ms", body: `{"holder": "a", "wait_ms": -1}`, pointer: "/wait_ms", detail: "is -1; give 0 to 50000"},
		{name: "a wait_ms that is too long", body: `{"holder": "a", "wait_ms": 50001}`, pointer: "/wait_ms", detail: "is 50001; give 0 to 50000"},
		{name: "the greatest 64-bit wait_ms", body: `{"holder": "a", "wait_ms": 9223372036854775807}`, pointer: "/wait_ms", detail: "is 9223372036854775807; give 0 to 50000"},
		{name: "a wait_ms that is text", body: `{"holder": "a", "wait_ms": "30000"}`, pointer: "/wait_ms", detail: "must be a whole number"},
		{name: "permits of capacity 0", body: `{"holder": "a", "mode": "permit", "capacity": 0}`, pointer: "/capacity", detail: "is 0; give 1 to 1000"},
		{name: "permits of a negative capacity", body: `{"holder": "a", "mode": "permit", "capacity": -1}`, pointer: "/capacity", detail: "is -1; give 1 to 1000"},
		{name: "permits of too great a capacity", body: `{"holder": "a", "mode": "permit", "capacity": 1001}`, pointer: "/capacity", detail: "is 1001; give 1 to 1000"},
		{name: "a capacity with a fraction", body: `{"holder": "a", "mode": "permit", "capacity": 1.5}`, pointer: "/capacity", detail: "must be a whole number"},
	})
}

func TestWhichLeaseIsRevokedIsReadStrictly(t *testing.T) {
	t.Parallel()
	const path = "/v1/locks/a/revoke"
	wantBadRequests(t, []badRequest{
		{name: "a slot beyond the last", path: path, body: `{"fencing_token": 1, "reason": "r", "slot": 1001}`, pointer: "/slot", detail: "give 0 to 1000"},
		{name: "an instant without a zone", path: path, body: `{"fencing_token": 1, "reason": "r", "acquired_at": "2026-01-02T03:04:05"}`, pointer: "/acquired_at", detail: "RFC 3339"},
		{name: "an instant that is a number", path: path, body: `{"fencing_token": 1, "reason": "r", "acquired_at": 1767323045}`, pointer: "/acquired_at", detail: "RFC 3339"},
	})
}

func TestQueriesOfWhatWaitsAreReadStrictly(t *testing.T) {
	t.Parallel()
	wantBadRequests(t, []badRequest{
		{name: "a look with a parameter that it has not", path: "/v1/locks/a?wait=1", pointer: "wait", detail: "which has wait_ms"},
		{name: "a stream with a limit", path: "/v1/events/stream?limit=1", pointer: "limit", detail: "which has cursor, lock, prefix"},
		{name: "a stream with a wait_ms", path: "/v1/events/stream?wait_ms=1", pointer: "wait_ms", detail: "is not a parameter"},
		{name: "a stream with the browser's own parameter", path: "/v1/events/stream?lastEventId=1", pointer: "lastEventId", detail: "is not a parameter"},
		{name: "a list of locks that waits", path: "/v1/locks?wait_ms=1", pointer: "wait_ms", detail: "is not a parameter"},
		{name: "a look with a negative wait_ms", path: "/v1/locks/a?wait_ms=-1", pointer: "wait_ms", detail: "is -1; give 0 to 50000"},
		{name: "a look whose wait_ms is text", path: "/v1/locks/a?wait_ms=1s", pointer: "wait_ms", detail: "must be a whole number"},
		{name: "an empty wait_ms", path: "/v1/locks/a?wait_ms=", pointer: "wait_ms", detail: "must be a whole number"},
		{name: "events with a negative wait_ms", path: "/v1/events?wait_ms=-1", pointer: "wait_ms", detail: "is -1; give 0 to 50000"},
		{name: "events that wait too long", path: "/v1/events?wait_ms=50001", pointer: "wait_ms", detail: "is 50001; give 0 to 50000"},
		{name: "events with the least 64-bit wait_ms", path: "/v1/events?wait_ms=-9223372036854775808", pointer: "wait_ms", detail: "is too small; give 0 to 50000"},
		{name: "events whose wait_ms is text", path: "/v1/events?wait_ms=abc", pointer: "wait_ms", detail: "must be a whole number"},
		{name: "the queue of a name that cannot be", path: "/v1/locks/a,b/queue", pointer: "name", detail: "invalid character at byte 1"},
		{name: "a stream of an empty lock", path: "/v1/events/stream?lock=", pointer: "lock", detail: "is empty"},
		{name: "a stream of a lock that cannot be", path: "/v1/events/stream?lock=a%2Fb", pointer: "lock", detail: "at byte 1"},
		{name: "a stream of a lock and a prefix", path: "/v1/events/stream?lock=a&prefix=b", pointer: "prefix", detail: "cannot be combined with lock"},
	})
}
