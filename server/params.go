package server

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
)

// parameters are those that the query of a route may have. A route that is not
// here has none.
var parameters = map[string][]string{
	"/v1/locks":         {"cursor", "holder", "limit", "prefix", "state"},
	"/v1/locks/{name}":  {"wait_ms"},
	"/v1/events":        {"cursor", "limit", "lock", "prefix", "wait_ms"},
	"/v1/events/stream": {"cursor", "lock", "prefix"},
}

// withDecodedPath makes a%3Ab the same name as a:b, by having chi route on the path as it
// was decoded, once. An encoded slash keeps the path as it was sent: it must not
// part a name in two, and is refused with the name.
func withDecodedPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
			r.URL.RawPath = ""
		}
		next.ServeHTTP(w, r)
	})
}

// withParameterCheck refuses names that cannot be, before anything decodes them once more,
// and parameters that the route has not. It leaves at most one If-None-Match.
func (s *Server) withParameterCheck(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkParameters(chi.RouteContext(r.Context()), r.URL.RawQuery); err != nil {
			s.refuse(w, r, parameterError{err})
			return
		}
		if tags := r.Header.Values("If-None-Match"); len(tags) > 1 {
			r.Header.Set("If-None-Match", strings.Join(tags, ", ")) // one list, on however many lines
		}
		next.ServeHTTP(w, r)
	})
}

// checkParameters leaves the query of what is not under /v1 alone: those who
// probe add to it what they like.
func checkParameters(route *chi.Context, query string) error {
	for _, param := range route.URLParams.Keys {
		if err := checkName(param, route.URLParam(param)); err != nil {
			return err
		}
	}
	if query == "" {
		return nil
	}
	pattern := route.RoutePattern()
	if !strings.HasPrefix(pattern, "/v1/") {
		return nil
	}
	return checkQuery(query, parameters[pattern])
}

// checkName checks the name of a lock, or the key of a resource.
func checkName(param, value string) error {
	if param == "key" {
		return lock.CheckKey(value)
	}
	return lock.CheckName(value)
}

func checkQuery(query string, allowed []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return &lock.Error{Code: lock.ErrInvalid, Detail: "The query cannot be read. Percent-encode what it holds."}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(allowed, name) && len(allowed) == 0:
			return lock.Invalid(name, "is a parameter of the query, and this call has none; leave it out")
		case !slices.Contains(allowed, name):
			return lock.Invalid(name, "is not a parameter of this call, which has %s", strings.Join(allowed, ", "))
		case len(values[name]) > 1:
			return lock.Invalid(name, "is there %d times; give it once", len(values[name]))
		}
	}
	return nil
}

// unbound refuses a parameter that the generated code could not read: a whole
// number, since all other parameters are strings, or a header that is there twice.
func (s *Server) unbound(w http.ResponseWriter, r *http.Request, err error) {
	var bad *openapi.InvalidParamFormatError
	var many *openapi.TooManyValuesForParamError
	switch {
	case errors.As(err, &bad):
		err = parameterError{lock.Invalid(bad.ParamName, "must be a whole number")}
	case errors.As(err, &many):
		err = parameterError{lock.Invalid(many.ParamName, "is there %d times; give it once", many.Count)}
	}
	s.refuse(w, r, err)
}
