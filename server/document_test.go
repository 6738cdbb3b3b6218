package server_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
)

// A document is the part of openapi.yaml that these tests compare with the server. The tests in test/contract compare
// all exchanges of this package's tests with the whole document.
type document struct {
	Paths      map[string]pathItem
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
	}
}

type pathItem struct {
	Parameters                                          []parameter
	Get, Put, Post, Delete, Options, Head, Patch, Trace *operation
}

type operation struct {
	Parameters  []parameter
	RequestBody any
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
}

type schema struct {
	Enum        []any
	Description string
}

func readDocument(t testing.TB) document {
	t.Helper()
	var d document
	if err := yaml.Unmarshal(paddock.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// operations returns the operations of a path by method.
func (p pathItem) operations() map[string]*operation {
	all := map[string]*operation{
		http.MethodGet: p.Get, http.MethodPut: p.Put, http.MethodPost: p.Post, http.MethodDelete: p.Delete,
		http.MethodOptions: p.Options, http.MethodHead: p.Head, http.MethodPatch: p.Patch, http.MethodTrace: p.Trace,
	}
	for method, o := range all {
		if o == nil {
			delete(all, method)
		}
	}
	return all
}

// queryParameters returns the names of the parameters that the query of an operation may have.
func (d document) queryParameters(t testing.TB, declared []parameter) []string {
	t.Helper()
	var names []string
	for _, p := range declared {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = d.Components.Parameters[name]
		}
		switch p.In {
		case "query":
			names = append(names, p.Name)
		case "path", "header":
		default:
			t.Fatalf("openapi.yaml has a parameter that this test cannot read: %+v", p)
		}
	}
	return names
}
