package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/paddock-lock/paddock"
)

// A contract is a RoundTripper that checks every answer, and every accepted request, against openapi.yaml.
type contract struct {
	t    testing.TB
	next http.RoundTripper
}

// described returns openapi.yaml and a router for its operations. Members that the document does not name are errors,
// in answers as well.
var described = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(paddock.OpenAPI)
	if err != nil {
		panic(err)
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
		panic(err)
	}
	return doc, router
})

// RoundTrip sends the request and checks both ways.
func (c contract) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if isStream(answer) {
		c.checkHeaders(r, answer)
		if r.Method != http.MethodHead {
			c.checkBody(r, sent, answer, nil)
		}
		return answer, nil // stream checks it event by event
	}
	got, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(got))
	c.checkHeaders(r, answer)
	if r.Method != http.MethodHead {
		c.checkBody(r, sent, answer, got)
	}
	return answer, nil
}

func (c contract) checkHeaders(r *http.Request, answer *http.Response) {
	c.t.Helper()
	h := answer.Header
	if len(h.Get("X-Request-Id")) != 36 || h.Get("X-Content-Type-Options") != "nosniff" {
		c.t.Errorf("%s %s: headers %v", r.Method, r.URL, h)
	}
	if strings.HasPrefix(r.URL.Path, "/v1") && h.Get("Cache-Control") != "no-store" {
		c.t.Errorf("%s %s: Cache-Control %q", r.Method, r.URL, h.Get("Cache-Control"))
	}
	late := answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests
	if late && h.Get("Retry-After") == "" {
		c.t.Errorf("%s %s: %d without Retry-After", r.Method, r.URL, answer.StatusCode)
	}
	if answer.StatusCode == http.StatusNotModified && (h.Get("ETag") == "" || h.Get("Content-Type") != "") {
		c.t.Errorf("%s %s: 304 with %v", r.Method, r.URL, h)
	}
}

func (c contract) checkBody(r *http.Request, sent []byte, answer *http.Response, got []byte) {
	c.t.Helper()
	page := isPage(r.URL.Path) && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
	if answer.StatusCode >= http.StatusBadRequest && !page {
		c.checkProblem(r, answer, got)
	}
	_, router := described()
	route, params, err := router.FindRoute(r)
	if answer.StatusCode == http.StatusNotFound && bytes.Contains(got, []byte(`"code":"no_route"`)) {
		return // the document's paths also match with an extra slash
	}
	if err != nil {
		if answer.StatusCode < http.StatusBadRequest && !isPage(r.URL.Path) {
			c.t.Errorf("%s %s: %d, and openapi.yaml does not have it", r.Method, r.URL, answer.StatusCode)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // matrix_test.go tests authentication
	}}
	if answer.StatusCode < http.StatusBadRequest {
		if r.URL.Path == batchPath {
			sent = c.checkResults(sent, answer, got)
		}
		r.Body, r.GetBody = io.NopCloser(bytes.NewReader(sent)), nil
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			c.t.Errorf("%s %s: accepted, though %v", r.Method, r.URL, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: answer.StatusCode, Header: answer.Header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   answer.Header.Get("Content-Type") == "application/yaml" || isStream(answer), // kin-openapi would parse it
		},
	}
	if err := openapi3filter.ValidateResponse(r.Context(), out.SetBodyBytes(got)); err != nil {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// checkProblem checks a refusal, also on a path without an operation.
func (c contract) checkProblem(r *http.Request, answer *http.Response, got []byte) {
	c.t.Helper()
	doc, _ := described()
	var p map[string]any
	if err := json.Unmarshal(got, &p); err != nil {
		c.t.Errorf("%s %s: %d %q: %v", r.Method, r.URL, answer.StatusCode, got, err)
		return
	}
	if err := doc.Components.Schemas["Problem"].Value.VisitJSON(p); err != nil {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		c.t.Errorf("%s %s: a problem of type %q", r.Method, r.URL, kind)
	}
	if p["status"] != float64(answer.StatusCode) || p["title"] != http.StatusText(answer.StatusCode) || p["type"] != "about:blank" ||
		p["request_id"] != answer.Header.Get("X-Request-Id") {
		c.t.Errorf("%s %s: %d with problem %v", r.Method, r.URL, answer.StatusCode, p)
	}
	checkDetail(c.t, p["detail"])
}

// checkDetail checks that the detail is a sentence of this service, without the words of its libraries.
func checkDetail(t testing.TB, detail any) {
	t.Helper()
	text, _ := detail.(string)
	if len(text) < 20 || !strings.HasSuffix(text, ".") {
		t.Errorf("detail %q is not a sentence", text)
	}
	for _, word := range []string{"openapi.", "json:", "jsontext", "unmarshal", "strconv", "int64", "Go ", "*", "chi"} {
		if strings.Contains(text, word) && !strings.Contains(text, "/openapi.yaml") {
			t.Errorf("detail %q contains %q", text, word)
		}
	}
}

func isStream(answer *http.Response) bool {
	return answer.Header.Get("Content-Type") == "text/event-stream"
}

func isPage(path string) bool {
	return path == "/" || strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/ui")
}
