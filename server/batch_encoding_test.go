package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-lock/paddock/api"

	"github.com/paddock-lock/paddock/lock"
)

func TestBatchIsEncodedAsItsType(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/v1/batch", nil)
	grant := lock.Grant{Lease: lock.Lease{Name: "a", Holder: "h", Mode: lock.Shared}}
	replayed := grant
	replayed.Replayed = true
	b := batch{
		request: r,
		items:   []lock.Command{lock.Acquire{}, lock.Acquire{}, lock.Renew{}, lock.Release{}, nil, lock.Renew{}},
		results: []lock.Result{{Grant: grant}, {Grant: replayed}, {Grant: grant}, {}, {Err: lock.Invalid("op", "is bad")}, {Err: lock.ErrLeaseLost}},
	}
	var got api.BatchResults
	if err := json.Unmarshal(encoded(b), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{201, 200, 200, 204, 400, 409} {
		result := got.Results[i]
		leased, refused := want < http.StatusNoContent, want >= http.StatusBadRequest
		if result.Status != want || (result.Lease != nil) != leased || (result.Problem != nil) != refused {
			t.Errorf("item %d is told %+v, want %d", i, result, want)
		}
		if leased && (result.Lease.Name != "a" || result.Lease.Mode != api.Shared) {
			t.Errorf("item %d has the lease %+v", i, result.Lease)
		}
	}
}
