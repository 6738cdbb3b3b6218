package contract_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/paddock-lock/paddock"
)

// A document is openapi.yaml with a router for its operations. Members that it does not name are errors, in answers
// as well.
type document struct {
	*openapi3.T
	router routers.Router
}

func readDocument(t *testing.T) document {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(paddock.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	// OpenAPI 3.0 allows null where a schema has no type; kin-openapi allows it only where nullable is set.
	doc.Components.Schemas["Value"].Value.Nullable = true
	for _, schema := range doc.Components.Schemas {
		s := schema.Value
		if s.Type.Is("object") && len(s.Properties) > 0 {
			s.AdditionalProperties.Has = new(false)
		}
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return document{doc, router}
}

func TestExamplesMatchTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(paddock.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Error(err)
	}
}
