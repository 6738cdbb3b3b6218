// Package paddock has the systems that are Paddock: over HTTP with a lean client, in many items
// a request, and through the Go SDK; on one replica or several.
//
// Those on a Deployment of the same number of replicas share it, so that they differ by their
// clients alone.
package paddock
