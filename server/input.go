package server

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

// queryParameters are the query parameters of each route. Other routes have none.
var queryParameters = map[string][]string{
	"/v1/locks":              {"contains", "contended", "cursor", "holder", "limit", "prefix", "sort", "state"},
	"/v1/locks/{name}":       {"wait_ms"},
	"/v1/locks/{name}/holds": {"at", "limit", "until"},
	"/v1/sessions":           {"cursor", "holder", "limit"},
	"/v1/events":             {"cursor", "deadlock", "holder", "kind", "limit", "lock", "order", "prefix", "since", "until", "wait_ms"},
	"/v1/events/stream":      {"cursor", "lock", "prefix"},
}

// decodePath makes chi route on the decoded path, so that a%3Ab is the same name as a:b. It keeps a path with an encoded
// slash as it was sent, so that the slash does not split a name. checkName refuses such a name.
func decodePath(_ http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
		r.URL.RawPath = ""
	}
	return nil
}

// checkTarget refuses invalid names and unknown parameters.
func checkTarget(_ http.ResponseWriter, r *http.Request) error {
	if err := checkParameters(chi.RouteContext(r.Context()), r.URL.RawQuery); err != nil {
		return parameterError{err}
	}
	return nil
}

// checkParameters checks the path and, under /v1, the query. Other paths, such as /livez, accept any query.
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
	return checkQuery(query, queryParameters[pattern])
}

// checkName checks a parameter of the path: the name of a lock, the key of a resource, a scope, or the public name of a
// session.
func checkName(param, value string) error {
	switch param {
	case "key":
		return lock.CheckKey(value)
	case "scope":
		return lock.CheckScope(lock.Scope(value))
	case "session":
		_, err := lock.ParseSessionRef(param, value)
		return err
	}
	return lock.CheckName(value)
}

func checkQuery(query string, allowed []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return &lock.Error{Code: lock.ErrInvalid, Detail: "The query cannot be parsed. Percent-encode its values."}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(allowed, name) && len(allowed) == 0:
			return lock.Invalid(name, "is not a parameter of this call, which has none; leave it out")
		case !slices.Contains(allowed, name):
			return lock.Invalid(name, "is not a parameter of this call, which has %s", strings.Join(allowed, ", "))
		case len(values[name]) > 1:
			return lock.Invalid(name, "is there %d times; give it once", len(values[name]))
		}
	}
	return nil
}

// nameIn returns the name in the path: of a lock, a resource, a tree, a scope or a session; empty if the route has none.
func nameIn(r *http.Request) string {
	values := chi.RouteContext(r.Context()).URLParams.Values
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// decode returns the command in the request's body, for what the path names.
func decode[Command any](
	w http.ResponseWriter, r *http.Request, from func(string, []byte) (Command, error),
) (Command, error) {
	buffers := requestContextOf(r).buffers
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	body, err := readBody(buffer, w, r, MaxBodySize)
	if err != nil {
		return *new(Command), err
	}
	name := nameIn(r)
	in, err := from(name, body)
	if name == "" && err == nil {
		recordLocks(r.Context(), in)
	}
	return in, err
}

// readBody reads the request's body into the buffer. The Content-Type must be JSON, and the body at most limit bytes.
// The result is valid until the buffer is used again.
func readBody(into *bytes.Buffer, w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	return readAny(into, w, r, limit)
}

// readAny is readBody for a body of any Content-Type.
func readAny(into *bytes.Buffer, w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body := r.Body
	if r.ContentLength < 0 || r.ContentLength > limit { // otherwise net/http reads no more than that
		body = http.MaxBytesReader(w, body, limit)
	}
	into.Reset()
	_, err := into.ReadFrom(body)
	switch {
	case err == nil:
		return into.Bytes(), nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, request.TooLarge("body", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, request.InvalidBody("did not arrive within %v. Send it again", readTimeout)
	}
	return nil, request.InvalidBody("broke off after %d bytes. Send it again", into.Len())
}

// checkNoBody refuses members in the body of a call that has none: the client expects an effect that the call does not
// have.
func checkNoBody(w http.ResponseWriter, r *http.Request) error {
	route := chi.RouteContext(r.Context()).RoutePattern()
	if r.ContentLength != 0 && strings.HasPrefix(route, "/v1/") && !hasBody(r.Method, route) {
		if err := checkNoMembers(w, r); err != nil {
			return bodyError{err}
		}
	}
	return nil
}

// hasBody reports whether the calls of the route have a body. A test compares it with openapi.yaml.
func hasBody(method, route string) bool {
	return method == http.MethodPost || method == http.MethodPut && route != "/v1/trees/{root}"
}

// checkNoMembers returns an error unless the body is empty or an empty object.
func checkNoMembers(w http.ResponseWriter, r *http.Request) error {
	body, err := readAny(new(bytes.Buffer), w, r, MaxBodySize)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	return request.CheckEmpty(body)
}

// checkEncoding refuses a request whose body has a Content-Encoding other than identity: no handler decodes one.
func checkEncoding(_ http.ResponseWriter, r *http.Request) error {
	if encoded, ok := r.Header["Content-Encoding"]; ok && r.ContentLength != 0 && !isIdentity(encoded) {
		return &lock.Error{Code: ErrUnsupportedMediaType, Detail: fmt.Sprintf(
			"The body has Content-Encoding %.40q, which is not supported. Send the body without Content-Encoding.",
			strings.Join(encoded, ", "))}
	}
	return nil
}

// isIdentity reports whether the values of a Content-Encoding header name no encoding other than identity.
func isIdentity(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
}

// checkMediaType refuses a Content-Type other than JSON. It ignores parameters such as charset: JSON is always UTF-8.
func checkMediaType(header string) error {
	if header == jsonType {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(header); err == nil && kind == jsonType {
		return nil
	}
	says := "has no Content-Type"
	if header != "" {
		says = fmt.Sprintf("says that it is %q", header)
	}
	return &lock.Error{Code: ErrUnsupportedMediaType, Detail: "The body " + says +
		". Send it as Content-Type: application/json; curl --json does."}
}
