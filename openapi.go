// Package paddock embeds the contract of the lock service: openapi.yaml, and the SQL of the fence for users' tables.
//
// Package lock holds the rules of locks; begin reading there. cmd/paddock is the binary.
package paddock

import _ "embed"

// OpenAPI is openapi.yaml: OpenAPI 3.0.3.
//
//go:embed openapi.yaml
var OpenAPI []byte
