package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/paddock-lock/paddock/internal/testkit/exchange"
)

// check returns what is wrong with an exchange, and the operation as "METHOD path", or "" if there is none.
func (d document) check(ctx context.Context, x exchange.Exchange) (operation string, wrong error) {
	if x.Event != nil {
		return "", d.checkSchema("Event", x.Event)
	}
	r, err := http.NewRequestWithContext(ctx, x.Method, x.URL, nil)
	if err != nil {
		return "", err
	}
	r.Header = x.Sent.Clone()
	if x.Method == http.MethodHead {
		return "", nil // the document has no HEAD, and no body follows
	}
	page := isPage(r.URL.Path)
	if x.Status >= http.StatusBadRequest && (!page || !strings.HasPrefix(x.Received.Get("Content-Type"), "text/html")) {
		wrong = d.checkSchema("Problem", x.Answer)
	}
	if x.Status == http.StatusNotFound && bytes.Contains(x.Answer, []byte(`"code":"no_route"`)) {
		return "", wrong // the document's paths also match with an extra slash
	}
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		if x.Status < http.StatusBadRequest && !page {
			wrong = errors.Join(wrong, fmt.Errorf("accepted, and openapi.yaml does not have it: %w", err))
		}
		return "", wrong
	}
	return route.Method + " " + route.Path, errors.Join(wrong, checkOperation(x, r, route, params))
}

func checkOperation(x exchange.Exchange, r *http.Request, route *routers.Route, params map[string]string) error {
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // package server tests authentication
	}}
	var wrong error
	if x.Status < http.StatusBadRequest {
		sent := x.Request
		if r.URL.Path == "/v1/batch" {
			if sent, wrong = acceptedItems(x); wrong != nil {
				return wrong
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			wrong = fmt.Errorf("accepted, though %w", err)
		}
	}
	kind := x.Received.Get("Content-Type")
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: x.Status, Header: x.Received,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   kind == "application/yaml" || kind == "text/event-stream", // kin-openapi would parse it
		},
	}
	return errors.Join(wrong, openapi3filter.ValidateResponse(r.Context(), out.SetBodyBytes(x.Answer)))
}

// checkSchema compares a JSON object with a schema of the document.
func (d document) checkSchema(name string, text []byte) error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return d.Components.Schemas[name].Value.VisitJSON(object)
}

// acceptedItems returns the batch without the items that the server refused as malformed.
func acceptedItems(x exchange.Exchange) ([]byte, error) {
	var sent struct {
		Items []json.RawMessage `json:"items"`
	}
	var answer struct{ Results []struct{ Status int } }
	if err := errors.Join(json.Unmarshal(x.Request, &sent), json.Unmarshal(x.Answer, &answer)); err != nil {
		return nil, err
	}
	if len(sent.Items) != len(answer.Results) {
		return nil, fmt.Errorf("%d results of %d items", len(answer.Results), len(sent.Items))
	}
	accepted := sent.Items[:0]
	for i, result := range answer.Results {
		if result.Status != http.StatusBadRequest && result.Status != http.StatusRequestEntityTooLarge {
			accepted = append(accepted, sent.Items[i])
		}
	}
	if len(accepted) == 0 { // the document demands an item
		accepted = append(accepted, []byte(`{"op": "release", "name": "a", "lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"}`))
	}
	sent.Items = accepted
	return json.Marshal(sent)
}

// isPage reports whether the path is one of the pages, or the metrics, which the document does not have.
func isPage(path string) bool {
	return path == "/" || path == "/metrics" || strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/ui")
}
