// Package paddock holds the wire contract of the lock service, from which the
// server, the client and their documentation are made. The service itself is
// put together in cmd/paddock; begin reading in package lock.
package paddock

import _ "embed"

// OpenAPI is openapi.yaml: OpenAPI 3.0.3.
//
//go:embed openapi.yaml
var OpenAPI []byte
