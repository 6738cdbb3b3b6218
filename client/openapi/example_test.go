package openapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/openapi"
)

func Example() {
	ctx := context.Background()
	c := &openapi.Client{
		BaseURL: "https://locks.example.org",
		Header:  http.Header{"Authorization": {"Bearer " + os.Getenv("PADDOCK_KEY")}},
	}
	id := uuid.New()
	lease, _, err := c.AcquireLock(ctx, "jobs:nightly", openapi.AcquireRequest{Holder: "worker-1", LeaseID: &id})
	var refused *openapi.Error
	switch {
	case errors.As(err, &refused) && refused.Problem.Code == openapi.CodeLockHeld:
		fmt.Println(*refused.Problem.Holder, "holds the lock")
		return
	case err != nil:
		fmt.Println(err) // send the same acquire again to find out whether it was granted
		return
	}
	fmt.Println("granted with token", lease.FencingToken)
	_, err = c.ReleaseLease(ctx, lease.Name, openapi.ReleaseRequest{LeaseID: id})
	fmt.Println(err)
}
