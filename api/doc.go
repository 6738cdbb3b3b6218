// Package api is the HTTP API in Go: the types of openapi.yaml, and a plain [Client] with one method for each
// operation. All of it is generated. The client sends a request and returns the answer; it does not renew leases,
// retry, or stop work whose lease has ended. Most programs want package client, or its guards, which do.
// The server and package client use the same types.
//
//	c := &api.Client{BaseURL: "http://127.0.0.1:8080"}
//	id := uuid.New()
//	lease, res, err := c.AcquireLock(ctx, "jobs:nightly", api.AcquireRequest{Holder: "worker-1", LeaseID: &id})
//
// A method returns the decoded body, which is nil for a response without one, and the response, which has the status
// and the header. The body of the response is closed, except where a method returns no value and says so.
//
// A response without success is an [*Error]. Its Problem tells by Code what happened, and by Detail what to do.
// Without a Code, something other than Paddock answered. Any other error comes from net/http or encoding/json, and a
// change may or may not have been made. Send it again with the same lease_id.
//
// A Lease, a LeaseSet and a Session print the lease_id or session_id, which is a secret: log single members.
//
// Optional members are pointers; nil leaves them out. An item of a BatchRequest is a BatchAcquire, a BatchRenew or a
// BatchRelease.
//
// The types may gain fields and the enumerations values, as the API does. Requests have no timeout but the context's.
package api

//go:generate go tool -modfile=../internal/tools/go.mod oapi-codegen -config config.yaml ../openapi.yaml
