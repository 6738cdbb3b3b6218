package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/server"
)

func TestRoutesMatchTheDocument(t *testing.T) {
	t.Parallel()
	var want, got []string
	for path, item := range readDocument(t).Paths {
		for method := range item.operations() {
			want = append(want, method+" "+path)
		}
	}
	err := chi.Walk(server.New(server.Options{}).Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !isPage(route) {
			got = append(got, method+" "+route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParametersMatchTheDocument(t *testing.T) {
	t.Parallel()
	doc := readDocument(t)
	for path, item := range doc.Paths {
		var want []string
		for _, operation := range item.operations() {
			want = append(want, doc.queryParameters(t, slices.Concat(item.Parameters, operation.Parameters))...)
		}
		slices.Sort(want)
		if got := server.Parameters()[path]; !slices.Equal(want, got) {
			t.Errorf("%s: openapi.yaml has %q, the server %q", path, want, got)
		}
	}
}

// TestEveryParameterIsRead sends each parameter of each operation with a value that is invalid for all of them.
func TestEveryParameterIsRead(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	for path, names := range server.Parameters() {
		for _, name := range names {
			got := s.get(strings.Replace(path, "{name}", "a", 1) + "?" + name + "=%01")
			got.want(t, http.StatusBadRequest, map[string]any{"code": "invalid_request", "pointer": name})
		}
	}
}

func TestBodiesMatchTheDocument(t *testing.T) {
	t.Parallel()
	for path, item := range readDocument(t).Paths {
		for method, operation := range item.operations() {
			if got, want := server.HasBody(method, path), operation.RequestBody != nil; got != want {
				t.Errorf("%s %s: the server reads a body is %v, want %v", method, path, got, want)
			}
		}
	}
}

func TestDocumentIsServedInBothForms(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	if got := s.get("/openapi.yaml"); got.text != string(paddock.OpenAPI) || got.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%v %d bytes", got.Header, len(got.text))
	}
	var want map[string]any
	if err := yaml.Unmarshal(paddock.OpenAPI, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.get("/openapi.json").body); diff != "" {
		t.Error(diff)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	var seen string
	ui := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusAccepted)
	})
	with, without := serve(t, server.Options{UI: ui}), serve(t, server.Options{})
	for _, c := range []struct {
		s        harness
		path, to string
	}{
		{with, "/", "./ui/"}, {with, "/ui", "./ui/"}, {with, "/docs", "./docs/"}, {without, "/", "./docs/"}, {without, "/docs", "./docs/"},
	} {
		if got := c.s.get(c.path); got.StatusCode != http.StatusTemporaryRedirect || got.Header.Get("Location") != c.to {
			t.Errorf("%s: %d to %s", c.path, got.StatusCode, got.Header.Get("Location"))
		}
	}
	for _, path := range []string{"/ui/", "/ui/locks/a"} {
		if with.post(path, "x=1").want(t, http.StatusAccepted, nil); seen != "POST "+path {
			t.Errorf("the page saw %s", seen)
		}
	}
}

func TestDocsLoadNothingFromOtherOrigins(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	got := s.get("/docs/")
	got.want(t, http.StatusOK, nil)
	policy := got.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'; script-src 'self' 'sha256-") || strings.Contains(policy, "unsafe") ||
		strings.Count(policy, "sha256-") != strings.Count(got.text, "<script>")+strings.Count(got.text, "<style>") {
		t.Errorf("policy %s", policy)
	}
	for _, address := range strings.Split(got.text, `"`) {
		if strings.HasPrefix(address, "../docs/") && strings.Contains(address, ".") {
			s.get(address[2:]).want(t, http.StatusOK, nil)
		}
		if strings.HasPrefix(address, "//") && len(address) > 2 || strings.HasPrefix(address, "http") && !strings.HasSuffix(address, "://") {
			t.Errorf("the page loads %s", address)
		}
	}
}
