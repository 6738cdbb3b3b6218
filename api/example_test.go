package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
)

func Example() {
	ctx := context.Background()
	c := &api.Client{
		BaseURL: "https://locks.example.org",
		Header:  http.Header{"Authorization": {"Bearer " + os.Getenv("PADDOCK_KEY")}},
	}
	id := uuid.New()
	lease, _, err := c.AcquireLock(ctx, "jobs:nightly", api.AcquireRequest{Holder: "worker-1", LeaseID: &id})
	var refused *api.Error
	switch {
	case errors.As(err, &refused) && refused.Problem.Code == api.CodeLockHeld:
		fmt.Println(*refused.Problem.Holder, "holds the lock")
		return
	case err != nil:
		fmt.Println(err) // send the same acquire again to find out whether it was granted
		return
	}
	fmt.Println("granted with token", lease.FencingToken)
	_, _, err = c.RenewLease(ctx, "jobs:nightly", api.RenewRequest{LeaseID: id})
	if errors.As(err, &refused) && refused.Problem.Code == api.CodeLeaseLost {
		fmt.Println("stop the work:", refused.Problem.Detail)
		return
	}
	_, err = c.ReleaseLease(ctx, "jobs:nightly", api.ReleaseRequest{LeaseID: id})
	fmt.Println(err)
}
