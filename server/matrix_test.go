package server_test

// callers are the columns of the matrix. Those after expired are keys of newKeyring.
var callers = []string{"none", "malformed", "unknown", "expired", "read", "lock", "admin", "right", "head", "other"}

// cells are the words in the matrix. Other cells are a success status.
var cells = map[string]struct {
	status int
	code   string
}{
	"missing": {401, "key_missing"}, "invalid": {401, "key_invalid"}, "expired": {401, "key_expired"},
	"role": {403, "role_missing"}, "name": {403, "name_not_allowed"},
	"forbidden": {403, ""}, // a page
	"absent":    {404, ""},
	"empty":     {404, "not_found"},
	"bad":       {400, "invalid_request"},
	"nothing":   {404, "no_route"}, "method": {405, "method_not_allowed"}, "stale": {412, "unknown_token"},
	"current": {409, "token_mismatch"},
}

const (
	shut    = "missing invalid invalid expired " // callers without a valid key are refused
	free    = "200 200 200 200 "                 // callers without a valid key are served
	take    = `{"holder": "h"}`
	revoke  = `{"fencing_token": 1, "reason": "r"}`
	because = `{"reason": "r"}`
	verify  = `"fencing_token": 1}`
	two     = `{"holder": "h", "locks": [{"name": "billing:new"}, {"name": "billing:other"}]}`
	apart   = `{"holder": "h", "locks": [{"name": "billing:new"}, {"name": "billing3"}]}`
	many    = `{"items": [{"op": "acquire", "name": "billing:new", "holder": "h"}]}`
)

// matrix has the answer to each caller on each route of the service that swappableService.reset describes.
var matrix = []struct{ route, path, body, cells string }{
	// route                          path                                  body        none malformed unknown expired
	// read lock admin right head other
	{"POST /v1/locks/{name}/acquire", "/v1/locks/billing:new/acquire", take, shut + "role 201 201 201 201 name"},
	{"POST /v1/locks/{name}/acquire", "/v1/locks/billing/acquire", take, shut + "role 201 201 201 201 name"},
	{"POST /v1/locks/{name}/acquire", "/v1/locks/billing3/acquire", take, shut + "role 201 201 name name name"},
	{"POST /v1/locks/{name}/acquire", "/v1/locks/billing%3Anew/acquire", take, shut + "role 201 201 201 201 name"},
	{"POST /v1/locks/{name}/renew", "/v1/locks/billing:a/renew", oneID, shut + "role 200 200 200 200 name"},
	{"POST /v1/locks/{name}/release", "/v1/locks/billing:a/release", oneID, shut + "role 204 204 204 204 name"},
	{"POST /v1/acquire", "/v1/acquire", two, shut + "role 201 201 201 201 name"},
	{"POST /v1/acquire", "/v1/acquire", apart, shut + "role 201 201 name name name"},
	{"POST /v1/renew", "/v1/renew", namesOf("billing:a"), shut + "role 200 200 200 200 name"},
	{"POST /v1/renew", "/v1/renew", namesOf("billing:a", "billing2"), shut + "role bad bad name name name"},
	{"POST /v1/release", "/v1/release", namesOf("billing:a"), shut + "role 204 204 204 204 name"},
	{"POST /v1/release", "/v1/release", namesOf("billing2", "billing:a"), shut + "role bad bad name name name"},
	{"POST /v1/batch", "/v1/batch", many, shut + "200 200 200 200 200 200"}, // its items: TestEachItemIsCheckedSeparately in access
	{"POST /v1/locks/{name}/revoke", "/v1/locks/billing:a/revoke", revoke, shut + "role role 200 role 200 role"},
	{"POST /v1/locks/{name}/revoke", "/v1/locks/billing2/revoke", `{"fencing_token": 2, "reason": "r"}`, shut + "role role 200 role name role"},
	{"GET /v1/locks/{name}", "/v1/locks/billing:a", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/locks/{name}", "/v1/locks/billing", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/locks/{name}", "/v1/locks/billing2", "", shut + "200 200 200 name name name"},
	{"GET /v1/locks/{name}", "/v1/locks/Billing:a", "", shut + "200 200 200 name name name"},
	{"GET /v1/locks/{name}/queue", "/v1/locks/billing:a/queue", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/locks/{name}/queue", "/v1/locks/billing2/queue", "", shut + "200 200 200 name name name"},
	{"GET /v1/locks/{name}/holds", "/v1/locks/billing:a/holds", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/locks/{name}/holds", "/v1/locks/billing2/holds?limit=1", "", shut + "200 200 200 name name name"},
	{"POST /v1/sessions", "/v1/sessions", take, shut + "role 201 201 201 201 201"},
	{"POST /v1/sessions/renew", "/v1/sessions/renew", oneSession, shut + "role 200 200 200 200 200"},
	{"POST /v1/sessions/close", "/v1/sessions/close", oneSession, shut + "role 204 204 204 204 204"},
	{"GET /v1/trees", "/v1/trees", "", shut + "200 200 200 200 200 200"},
	{"PUT /v1/trees/{root}", "/v1/trees/billing:tree", "", shut + "role role 200 role 200 role"},
	{"PUT /v1/trees/{root}", "/v1/trees/billing3", "", shut + "role role 200 role name role"},
	{"PUT /v1/trees/{root}", "/v1/trees/billing3:", "", shut + "role role bad role name role"},
	{"DELETE /v1/trees/{root}", "/v1/trees/billing:tree", "", shut + "role role 204 role 204 role"},
	{"DELETE /v1/trees/{root}", "/v1/trees/billing3", "", shut + "role role 204 role name role"},
	{"GET /v1/freezes", "/v1/freezes", "", shut + "200 200 200 200 200 200"},
	{"PUT /v1/freezes/{scope}", "/v1/freezes/billing:a", because, shut + "role role 200 role 200 role"},
	{"PUT /v1/freezes/{scope}", "/v1/freezes/billing:", because, shut + "role role 200 role 200 role"},
	{"PUT /v1/freezes/{scope}", "/v1/freezes/billing3", because, shut + "role role 200 role name role"},
	{"PUT /v1/freezes/{scope}", "/v1/freezes/b:", because, shut + "role role 200 role name role"},
	{"PUT /v1/freezes/{scope}", "/v1/freezes/billing:%20", because, shut + "bad bad bad bad bad bad"},
	{"GET /v1/freezes/{scope}", "/v1/freezes/" + frozenScope, "", shut + "200 200 200 200 200 name"},
	{"GET /v1/freezes/{scope}", "/v1/freezes/billing3", "", shut + "empty empty empty name name name"},
	{"DELETE /v1/freezes/{scope}", "/v1/freezes/" + frozenScope, "", shut + "role role 204 role 204 role"},
	{"DELETE /v1/freezes/{scope}", "/v1/freezes/billing3", "", shut + "role role 204 role name role"},
	{"GET /v1/rules", "/v1/rules", "", shut + "200 200 200 200 200 200"},
	{"PUT /v1/rules/{scope}", "/v1/rules/billing:new:", `{"max_ttl_ms": 60000}`, shut + "role role 200 role 200 role"},
	{"PUT /v1/rules/{scope}", "/v1/rules/billing3:", `{"max_ttl_ms": 60000}`, shut + "role role 200 role name role"},
	{"PUT /v1/rules/{scope}", "/v1/rules/billing:new:", `{}`, shut + "role role bad role bad role"},
	{"DELETE /v1/rules/{scope}", "/v1/rules/billing:", "", shut + "role role 204 role 204 role"},
	{"DELETE /v1/rules/{scope}", "/v1/rules/billing3:", "", shut + "role role 204 role name role"},
	{"GET /v1/sessions", "/v1/sessions", "", shut + "200 200 200 name name name"},
	{"GET /v1/sessions", "/v1/sessions?holder=h&limit=1", "", shut + "200 200 200 name name name"},
	{"GET /v1/sessions/{session}", sessionPath, "", shut + "200 200 200 200 200 200"},
	{"GET /v1/sessions/{session}", "/v1/sessions/0000000000000001", "", shut + "empty empty empty empty empty empty"},
	{"POST /v1/sessions/{session}/revoke", sessionPath + "/revoke", `{"reason": "r"}`, shut + "role role 200 role name role"},
	{"POST /v1/sessions/{session}/revoke", "/v1/sessions/0000000000000001/revoke", `{"reason": "r"}`, shut + "role role empty role name role"},
	{"GET /v1/locks", "/v1/locks?prefix=billing:", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/locks", "/v1/locks?prefix=billing", "", shut + "200 200 200 name name name"},
	{"GET /v1/locks", "/v1/locks", "", shut + "200 200 200 name name name"},
	{"GET /v1/locks", "/v1/locks?holder=h", "", shut + "200 200 200 name name name"},
	{"GET /v1/events", "/v1/events?lock=billing:a", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/events", "/v1/events?prefix=billing:", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/events", "/v1/events?prefix=billing", "", shut + "200 200 200 name name name"},
	{"GET /v1/events", "/v1/events", "", shut + "200 200 200 name name name"},
	{"POST /v1/events/wait", "/v1/events/wait", `{"locks": ["billing:a", "billing"]}`, shut + "200 200 200 200 200 name"},
	{"POST /v1/events/wait", "/v1/events/wait", `{"locks": ["billing:a", "billing2"]}`, shut + "200 200 200 name name name"},
	{"POST /v1/events/wait", "/v1/events/wait", `{"sessions": ["` + sessionName + `"]}`, shut + "200 200 200 200 200 200"},
	{"POST /v1/events/wait", "/v1/events/wait", `{}`, shut + "bad bad bad bad bad bad"},
	{"GET /v1/events/stream", "/v1/events/stream?lock=billing:a", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/events/stream", "/v1/events/stream?prefix=billing:", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/events/stream", "/v1/events/stream?prefix=bill", "", shut + "200 200 200 name name name"},
	{"GET /v1/events/stream", "/v1/events/stream", "", shut + "200 200 200 name name name"},
	{"POST /v1/tokens/verify", "/v1/tokens/verify", `{"name": "billing:a", ` + verify, shut + "200 200 200 200 200 name"},
	{"POST /v1/tokens/verify", "/v1/tokens/verify", `{"name": "billing2", ` + verify, shut + "200 200 200 name name name"},
	{"POST /v1/tokens/report", "/v1/tokens/report", `{"name": "billing:a", ` + verify, shut + "role current current current current name"},
	{"POST /v1/tokens/report", "/v1/tokens/report", `{"name": "billing2", ` + verify, shut + "role 200 200 name name name"},
	{"PUT /v1/fenced/{key}", "/v1/fenced/billing:k", `{"lock": "billing:a", "value": 1, ` + verify, shut + "role 200 200 200 200 name"},
	{"PUT /v1/fenced/{key}", "/v1/fenced/other:k", `{"lock": "billing:a", "value": 1, ` + verify, shut + "role 200 200 name name name"},
	{"PUT /v1/fenced/{key}", "/v1/fenced/billing:k", `{"lock": "other:a", "value": 1, ` + verify, shut + "role stale stale name name name"},
	{"GET /v1/fenced/{key}", "/v1/fenced/billing:k", "", shut + "200 200 200 200 200 name"},
	{"GET /v1/fenced/{key}", "/v1/fenced/billing2", "", shut + "empty empty empty name name name"},

	{"GET /livez", "/livez", "", free + "200 200 200 200 200 200"},
	{"GET /readyz", "/readyz", "", free + "200 200 200 200 200 200"},
	{"GET /metrics", "/metrics", "", shut + "200 200 200 name name name"},
	{"GET /version", "/version", "", shut + "200 200 200 200 200 200"},
	{"GET /openapi.yaml", "/openapi.yaml", "", shut + "200 200 200 200 200 200"},
	{"GET /openapi.json", "/openapi.json", "", shut + "200 200 200 200 200 200"},
	{"GET /", "/", "", shut + "307 307 307 307 307 307"},
	{"GET /docs", "/docs", "", shut + "307 307 307 307 307 307"},
	{"GET /docs/", "/docs/", "", shut + "200 200 200 200 200 200"},
	{"GET /docs/swagger-ui.css", "/docs/swagger-ui.css", "", shut + "200 200 200 200 200 200"},
	{"GET /docs/swagger-ui-bundle.js", "/docs/swagger-ui-bundle.js", "", shut + "200 200 200 200 200 200"},
	{"GET /docs/swagger-ui-standalone-preset.js", "/docs/swagger-ui-standalone-preset.js", "", shut + "200 200 200 200 200 200"},
	{"GET /docs/favicon-16x16.png", "/docs/favicon-16x16.png", "", shut + "200 200 200 200 200 200"},
	{"GET /docs/favicon-32x32.png", "/docs/favicon-32x32.png", "", shut + "200 200 200 200 200 200"},

	{"GET /ui", "/ui", "", shut + "307 307 307 307 307 307"},
	{"GET /ui/login", "/ui/login", "", free + "200 200 200 200 200 200"},
	{"POST /ui/login", "/ui/login", "", "303 303 303 303 303 303 303 303 303 303"},
	{"POST /ui/logout", "/ui/logout", "", "303 303 303 303 303 303 303 303 303 303"},
	{"GET /ui/*", "/ui/logout", "", shut + "absent absent absent absent absent absent"},
	{"GET /ui/*", "/ui/", "", shut + "200 200 200 200 200 200"},
	{"GET /ui/*", "/ui/?prefix=billing", "", shut + "200 200 200 200 200 forbidden"},
	{"GET /ui/*", "/ui/locks/billing:a", "", shut + "200 200 200 200 200 forbidden"},
	{"GET /ui/*", "/ui/locks/billing2", "", shut + "200 200 200 forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/revoke?name=billing:a&token=1", "", shut + "forbidden forbidden 200 forbidden 200 forbidden"},
	{"POST /ui/*", "/ui/revoke", "name=billing:a&token=1&reason=r", shut + "forbidden forbidden 303 forbidden 303 forbidden"},
	{"POST /ui/*", "/ui/revoke", "name=billing2&token=2&reason=r", shut + "forbidden forbidden 303 forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/sessions", "", shut + "200 200 200 forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/sessions?holder=h", "", shut + "200 200 200 forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/sessions/" + sessionName, "", shut + "200 200 200 200 200 200"},
	{"GET /ui/*", "/ui/sessions/0000000000000001", "", shut + "absent absent absent absent absent absent"},
	{"POST /ui/*", "/ui/sessions/" + sessionName, "reason=r", shut + "forbidden forbidden 303 forbidden forbidden forbidden"},
	{"POST /ui/*", "/ui/sessions/0000000000000001", "reason=r", shut + "forbidden forbidden absent forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/trees", "", shut + "200 200 200 200 200 200"},
	{"GET /ui/*", "/ui/trees/" + treeRoot, "", shut + "200 200 200 200 200 absent"},
	{"GET /ui/*", "/ui/trees/billing3", "", shut + "absent absent absent absent absent absent"},
	{"GET /ui/*", "/ui/trees/billing3:", "", shut + "400 400 400 400 400 400"},
	{"POST /ui/*", "/ui/trees", "root=billing:tree", shut + "forbidden forbidden 303 forbidden 303 forbidden"},
	{"POST /ui/*", "/ui/trees", "root=billing3", shut + "forbidden forbidden 303 forbidden forbidden forbidden"},
	{"POST /ui/*", "/ui/trees", "root=billing", shut + "forbidden forbidden 409 forbidden 409 forbidden"},
	{"POST /ui/*", "/ui/trees/" + treeRoot, "confirm=1", shut + "forbidden forbidden 303 forbidden 303 forbidden"},
	{"POST /ui/*", "/ui/trees/" + treeRoot, "", shut + "forbidden forbidden 400 forbidden 400 forbidden"},
	{"POST /ui/*", "/ui/trees/billing3", "confirm=1", shut + "forbidden forbidden 303 forbidden forbidden forbidden"},
	{"GET /ui/*", "/ui/assets/x/paddock.css", "", free + "200 200 200 200 200 200"},
	{"GET /ui/*", "/ui/assets/x/../../locks/billing:a", "", shut + "307 307 307 307 307 307"},
	{"GET /ui/*", "/ui/assets/../locks", "", shut + "307 307 307 307 307 307"},
	{"GET /ui/*", "/ui/assets/x/..", "", shut + "307 307 307 307 307 307"},
	{"GET /ui/*", "/ui/assets/%2e%2e/locks", "", shut + "307 307 307 307 307 307"},
	{"GET /ui/*", "/ui/assets/x%2f../locks", "", shut + "absent absent absent absent absent absent"},
	{"GET /ui/*", "/ui/assets/x/paddock.css/", "", shut + "absent absent absent absent absent absent"},
	{"GET /ui/*", "/ui/assets/x", "", shut + "absent absent absent absent absent absent"},
	{"GET /ui/*", "/ui/nothing", "", shut + "absent absent absent absent absent absent"},

	{"", "GET /v1/nothing", "", shut + "nothing nothing nothing nothing nothing nothing"},
	{"", "DELETE /v1/locks/billing:a", "", shut + "method method method method method method"},
	{"", "GET /livez2", "", shut + "nothing nothing nothing nothing nothing nothing"},
	{"", "POST /livez", "", "method method method method method method method method method method"},
}
