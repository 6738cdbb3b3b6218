package server

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// A document is openapi.yaml in both of its forms.
type document struct{ yaml, json []byte }

func newAPI(s *Server) *api {
	json, err := yaml.YAMLToJSON(paddock.OpenAPI)
	if err != nil {
		panic(fmt.Sprintf("the embedded openapi.yaml is not YAML: %v", err))
	}
	return &api{Server: s, document: document{yaml: paddock.OpenAPI, json: json}}
}

// Livez says that the process runs. It looks at nothing else.
func (a *api) Livez(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(_ context.Context) (reply, error) { return ok(wire.Health{Status: wire.Ok}), nil })
}

// Readyz says whether requests should be sent here.
func (a *api) Readyz(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context) (reply, error) {
		if a.draining.Load() {
			return reply{}, &lock.Error{Code: lock.ErrUnavailable, Detail: "This replica is shutting down. Send requests to another."}
		}
		if err := a.ready.check(ctx); err != nil {
			return reply{}, &lock.Error{Code: lock.ErrUnavailable, Cause: err,
				Detail: "This replica is not ready; its log says why under this request_id. Send requests to another."}
		}
		return ok(wire.Health{Status: wire.Ok}), nil
	})
}

// Version says what runs here.
func (a *api) Version(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(_ context.Context) (reply, error) {
		v := a.version
		return ok(wire.Version{Version: v.Version, Commit: wire.UnlessZero(v.Commit), Go: v.Go}), nil
	})
}

// OpenapiYAML returns openapi.yaml as it is.
func (a *api) OpenapiYAML(w http.ResponseWriter, r *http.Request) {
	a.writeText(w, r, "application/yaml", a.document.yaml)
}

// OpenapiJSON returns openapi.yaml as JSON.
func (a *api) OpenapiJSON(w http.ResponseWriter, r *http.Request) {
	a.writeText(w, r, "application/json", a.document.json)
}
