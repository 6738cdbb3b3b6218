// Package openapi is generated from openapi.yaml: the types of the wire and a
// low-level client. Do not edit it; change openapi.yaml and run go generate.
package openapi

//go:generate go tool oapi-codegen -config config.yaml ../../../openapi.yaml
