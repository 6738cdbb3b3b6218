package chart_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

const (
	root     = "../.."
	chartDir = root + "/deploy/helm/paddock"
	examples = chartDir + "/examples"
	plain    = root + "/deploy/kubernetes"
)

// valueSets returns the files of values that are rendered: those of testdata, of the examples and of the plain manifests.
func valueSets(t *testing.T) []string {
	t.Helper()
	sets := []string{plain + "/values.yaml"}
	for pattern, want := range map[string]int{"testdata/*.yaml": 3, examples + "/*/values.yaml": 2} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != want {
			t.Fatalf("%s are %v, %v; want %d", pattern, found, err, want)
		}
		sets = append(sets, found...)
	}
	return sets
}

// helm runs Helm on the chart, for a release with the name paddock, and returns what it prints.
func helm(t *testing.T, command string, args ...string) (out string, err error) {
	t.Helper()
	return helmAs(t, "paddock", command, args...)
}

// helmAs is helm for a release with another name.
func helmAs(t *testing.T, release, command string, args ...string) (out string, err error) {
	t.Helper()
	// Compiled without its release's flags, Helm takes the cluster for one of 2020.
	args = append([]string{command, release, chartDir, "--kube-version", "v1.37.0", "--namespace", "locks"}, args...)
	if command == "lint" {
		args = append(args[:1:1], args[2:]...)
	}
	run := exec.CommandContext(t.Context(), tools.Path(t, "helm"), args...)
	var stderr bytes.Buffer
	run.Stderr = &stderr
	text, err := run.Output()
	if err != nil {
		err = errors.New(string(text) + stderr.String())
	}
	return string(text), err
}

// render returns the manifests with the values, and further arguments of helm template.
func render(t *testing.T, values string, args ...string) string {
	t.Helper()
	text, err := helm(t, "template", append([]string{"--values", values}, args...)...)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return text
}

// validate compares manifests with the schemas of their kinds.
func validate(t *testing.T, manifests string) error {
	t.Helper()
	run := exec.CommandContext(t.Context(), tools.Path(t, "kubeconform"), "-strict", "-summary",
		"-schema-location", "testdata/schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
	run.Stdin = strings.NewReader(manifests)
	out, err := run.CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

// An object is one manifest.
type object map[string]any

// parse returns the manifests of the text.
func parse(t *testing.T, manifests string) (all []object) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(manifests)); ; {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, manifests)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// find returns the objects of a kind.
func find(all []object, kind string) (found []object) {
	for _, o := range all {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	return found
}

// decode decodes the member at the path of an object.
func decode[T any](t *testing.T, o object, path ...string) (value T) {
	t.Helper()
	var at any = map[string]any(o)
	for _, name := range path {
		members, ok := at.(map[string]any)
		if !ok {
			members, ok = at.(object)
		}
		if !ok {
			t.Fatalf("%v has no %s", o["kind"], strings.Join(path, "."))
		}
		at = members[name]
	}
	text, err := yaml.Marshal(at)
	if err == nil {
		err = yaml.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(path, "."), err)
	}
	return value
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
