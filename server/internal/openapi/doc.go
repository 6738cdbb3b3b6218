// Package openapi is generated from openapi.yaml: the routes of the API and how their parameters are read. The types
// are those of package api. Change the document and run go generate.
package openapi

//go:generate go tool -modfile=../../../internal/tools/go.mod oapi-codegen -config config.yaml ../../../openapi.yaml
