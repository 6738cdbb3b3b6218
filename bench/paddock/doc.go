// Package paddock contains the systems that measure Paddock: over HTTP with a lean client, in batches,
// through the Go SDK, and through guards; on one replica or several.
//
// Systems with the same number of replicas can share a Deployment, so that they differ only in their
// clients.
package paddock
