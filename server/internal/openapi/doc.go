// Package openapi is generated from openapi.yaml: the types of the wire and the
// routes. Nobody edits it; change the document and run go generate.
package openapi

//go:generate go tool oapi-codegen -config config.yaml ../../../openapi.yaml
