package paddock

import _ "embed"

// OpenAPI is openapi.yaml: OpenAPI 3.0.3.
//
//go:embed openapi.yaml
var OpenAPI []byte
