package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

const (
	acquireSetPath = "/v1/acquire"
	renewSetPath   = "/v1/renew"
	releaseSetPath = "/v1/release"
)

// namesOf returns the body of a renewal or a release of the set with leaseID.
func namesOf(names ...string) string {
	list, err := json.Marshal(names)
	if err != nil {
		panic(err)
	}
	return `{"lease_id": "` + leaseID + `", "names": ` + string(list) + `}`
}

// transfer is the body of an acquire of two accounts.
const transfer = `{"lease_id": "` + leaseID + `", "holder": "worker-1", "locks": [{"name": "b"}, {"name": "a", "mode": "shared"}]}`

// setOf returns the body of an acquire of these locks.
func setOf(locks string) string { return `{"holder": "h", "locks": [` + locks + `]}` }

func TestLocksOfASetAreReadStrictly(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range lock.MaxSetSize + 1 {
		many = append(many, fmt.Sprintf(`{"name": "a%d"}`, i))
	}
	at := func(i int, member string) string { return fmt.Sprintf("/locks/%d/%s", i, member) }
	cases := []badRequest{
		{name: "an empty list", body: setOf(``), pointer: "/locks", detail: "locks has 0 items; give 1 to 32"},
		{name: "a lock instead of a list", body: `{"holder": "h", "locks": {"name": "a"}}`, pointer: "/locks", detail: "must be in a list"},
		{name: "33 locks", body: setOf(strings.Join(many, ",")), pointer: "/locks", detail: "locks has 33 items; give 1 to 32"},
		{name: "a lock twice", body: setOf(`{"name": "a"}, {"name": "b"}, {"name": "a", "mode": "shared"}`), pointer: at(2, "name"), detail: "is given twice"},
		{name: "a lock that is a string", body: setOf(`{"name": "a"}, "b"`), pointer: "/locks/1", detail: `must be an object such as {"name"`},
		{name: "a lock without a name", body: setOf(`{"name": "a"}, {}`), pointer: at(1, "name"), detail: "locks/1/name is missing or empty"},
		{name: "a name that cannot be", body: setOf(`{"name": "a"}, {"name": "a/b"}`), pointer: at(1, "name"), detail: "at byte 1"},
		{name: "a name that cannot be, alone", body: setOf(`{"name": "a/b"}`), pointer: at(0, "name"), detail: "locks/0/name has an invalid character at byte 1"},
		{name: "a mode that there is not, alone", body: setOf(`{"name": "a", "mode": "x"}`), pointer: at(0, "mode"), detail: "locks/0/mode is invalid"},
		{name: "a capacity of zero", body: setOf(`{"name": "a", "mode": "permit", "capacity": 0}`), pointer: at(0, "capacity"), detail: "is 0; give 1 to 1000, the number of permits."},
		{name: "permits without a capacity", body: setOf(`{"name": "a", "mode": "permit"}`), pointer: at(0, "capacity"), detail: "is missing; give 1 to 1000"},
		{name: "a mode beside the list", body: `{"holder": "h", "mode": "shared", "locks": [{"name": "a"}]}`, pointer: "/mode", detail: "is not a member"},
		{name: "names instead of locks", body: `{"holder": "h", "names": ["a"]}`, pointer: "/names", detail: "which may have grace_ms, holder"},
		{name: "an unknown member of a lock", body: setOf(`{"name": "a", "colour": 1}`), pointer: at(0, "colour"), detail: "which may have capacity, mode, name"},
		{name: "an unknown member with a slash, a tilde and a percent sign", body: setOf(`{"name": "a", "a/b~c%d": 1}`), pointer: at(0, "a~1b~0c%d"), detail: "locks/0/a/b~c%d is not a member"},
		{name: "a member of a lock twice", body: setOf(`{"name": "a", "n\u0061me": "b"}`), pointer: at(0, "name"), detail: "is there twice"},
	}
	for i := range cases {
		cases[i].path = acquireSetPath
	}
	cases = append(cases, badRequest{name: "a method that there is not", method: http.MethodGet, path: acquireSetPath,
		status: http.StatusMethodNotAllowed, code: "method_not_allowed"})
	wantBadRequests(t, cases)
}

func TestNamesOfASetAreReadStrictly(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range lock.MaxSetSize + 1 {
		names = append(names, fmt.Sprintf("a%d", i))
	}
	cases := []badRequest{
		{name: "a release with a ttl_ms", path: releaseSetPath, body: strings.Replace(namesOf("a"), "{", `{"ttl_ms": 100, `, 1), pointer: "/ttl_ms", detail: "may have closed_ms, lease_id, names"},
	}
	for _, path := range []string{renewSetPath, releaseSetPath} {
		cases = append(cases, []badRequest{
			{name: path + " of no name", path: path, body: `{"lease_id": "` + leaseID + `", "names": []}`, pointer: "/names", detail: "names has 0 items; give 1 to 32"},
			{name: path + " of a name", path: path, body: `{"lease_id": "` + leaseID + `", "names": "a"}`, pointer: "/names", detail: "must be in a list"},
			{name: path + " of 33 names", path: path, body: namesOf(names...), pointer: "/names", detail: "names has 33 items; give 1 to 32"},
			{name: path + " of a name twice", path: path, body: namesOf("a", "b", "a"), pointer: "/names/2", detail: "is given twice"},
			{name: path + " of one name that cannot be", path: path, body: namesOf("a/b"), pointer: "/names/0", detail: "names/0 has an invalid character at byte 1"},
			{name: path + " of a number", path: path, body: `{"lease_id": "` + leaseID + `", "names": ["a", 1]}`, pointer: "/names/1", detail: "must be a string"},
			{name: path + " with locks", path: path, body: `{"lease_id": "` + leaseID + `", "locks": [{"name": "a"}]}`, pointer: "/locks", detail: "is not a member"},
		}...)
	}
	wantBadRequests(t, cases)
}

// TestAListOfOneIsThatLock: a call in the form of a list and one in the form of the lock find the same lease. Each has the
// answer of its form.
func TestAListOfOneIsThatLock(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	const one = `{"lease_id": "` + leaseID + `", "holder": "h"`
	granted := s.post(acquireSetPath, one+`, "locks": [{"name": "a"}]}`)
	granted.want(t, http.StatusCreated, map[string]any{"lease_id": leaseID, "name": nil, "fencing_token": nil})
	s.post("/v1/locks/a/acquire", one+"}").want(t, http.StatusOK, map[string]any{"lease_id": leaseID, "name": "a", "locks": nil})
	for path, body := range map[string]string{renewSetPath: namesOf("a"), "/v1/locks/a/renew": `{"lease_id": "` + leaseID + `"}`} {
		renewed := s.post(path, body)
		if _, list := renewed.body["locks"]; renewed.StatusCode != http.StatusOK || list != (path == renewSetPath) {
			t.Errorf("%s is answered with %d %v", path, renewed.StatusCode, renewed.text)
		}
	}
	s.post("/v1/locks/a/release", `{"lease_id": "`+leaseID+`"}`).want(t, http.StatusNoContent, nil)
	s.post(releaseSetPath, namesOf("a")).want(t, http.StatusNoContent, nil)
}
