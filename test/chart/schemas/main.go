// Command schemas writes the JSON Schemas of the kinds that the chart may render to ../testdata/schemas, in the form that
// kubeconform reads: of Kubernetes' own kinds from its OpenAPI document, and of the Prometheus operator's from its custom
// resource definitions. Both are in Go modules. Descriptions are left out, and unknown fields are refused.
//
// The schema of CloudNativePG's Cluster is written by hand, because its module is not published: it has only the fields
// that an example uses.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	kubernetes = "k8s.io/kubernetes@v1.37.2"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	target     = "../testdata/schemas"
)

var kinds = []string{
	"io.k8s.api.apps.v1.Deployment", "io.k8s.api.batch.v1.Job", "io.k8s.api.core.v1.ConfigMap",
	"io.k8s.api.core.v1.Secret", "io.k8s.api.core.v1.Service", "io.k8s.api.core.v1.ServiceAccount",
	"io.k8s.api.networking.v1.Ingress", "io.k8s.api.networking.v1.NetworkPolicy", "io.k8s.api.policy.v1.PodDisruptionBudget",
}

var resources = []string{"prometheusrules", "servicemonitors"}

type object = map[string]any

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("schemas: ", err)
	}
}

func run() error {
	dir, err := download(kubernetes)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return err
	}
	var document struct{ Definitions map[string]object }
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	used := make(object)
	for _, name := range kinds {
		part := strings.Split(name, ".")
		group, version, kind := part[3], part[4], part[5]
		if group == "core" {
			group = ""
		}
		if err := collect(document.Definitions, name, used); err != nil {
			return err
		}
		if err := write(kind, group, version, object{"$ref": "definitions.json#/definitions/" + name}); err != nil {
			return err
		}
	}
	if err := writeFile("definitions.json", object{"definitions": used}); err != nil {
		return err
	}
	return customResources()
}

// customResources writes the schemas of the Prometheus operator.
func customResources() error {
	dir, err := download(operator)
	if err != nil {
		return err
	}
	for _, name := range resources {
		text, err := os.ReadFile(filepath.Join(dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+name+".yaml"))
		if err != nil {
			return err
		}
		var definition struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPI object `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return err
		}
		version, group := definition.Spec.Versions[0], strings.SplitN(definition.Spec.Group, ".", 2)[0]
		root := strict(version.Schema.OpenAPI, "").(object)
		// The API server adds the fields of metadata by itself.
		root["properties"].(object)["metadata"] = object{"$ref": "definitions.json#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
		if err := write(definition.Spec.Names.Kind, group, version.Name, root); err != nil {
			return err
		}
	}
	return nil
}

// download returns the folder of a module.
func download(module string) (dir string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w: %s", module, err, out)
	}
	var answer struct{ Dir string }
	err = json.Unmarshal(out, &answer)
	return answer.Dir, err
}

// collect adds a definition, and all that it refers to.
func collect(definitions map[string]object, name string, used object) error {
	if _, ok := used[name]; ok {
		return nil
	}
	definition, ok := definitions[name]
	if !ok {
		return fmt.Errorf("%s defines no %s", kubernetes, name)
	}
	switch name {
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		used[name] = object{"type": []string{"integer", "string"}}
		return nil
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		used[name] = object{"type": []string{"number", "string"}}
		return nil
	}
	used[name] = strict(definition, "definitions.json")
	return refer(definition, func(other string) error { return collect(definitions, other, used) })
}

// refer calls do for each definition that the schema refers to.
func refer(schema any, do func(name string) error) error {
	switch s := schema.(type) {
	case object:
		for key, value := range s {
			if ref, ok := value.(string); ok && key == "$ref" {
				if err := do(strings.TrimPrefix(ref, "#/definitions/")); err != nil {
					return err
				}
			} else if err := refer(value, do); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range s {
			if err := refer(value, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// strict returns the schema without descriptions and extensions, with references into the file, and refusing unknown
// fields of objects whose fields it lists.
func strict(schema any, file string) any {
	switch s := schema.(type) {
	case object:
		kept := make(object)
		for key, value := range s {
			_, text := value.(string)
			switch {
			case key == "description" && text, strings.HasPrefix(key, "x-kubernetes-"), key == "default", key == "format" && text:
			case key == "$ref" && text:
				kept[key] = file + value.(string)
			default:
				kept[key] = strict(value, file)
			}
		}
		_, listed := kept["properties"].(object)
		if _, more := kept["additionalProperties"]; listed && !more && kept["type"] == "object" {
			kept["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			return object{"type": []string{"integer", "string"}}
		}
		return kept
	case []any:
		for i, value := range s {
			s[i] = strict(value, file)
		}
	}
	return schema
}

func write(kind, group, version string, schema object) error {
	name := strings.ToLower(strings.Join([]string{kind, group, version}, "-"))
	return writeFile(strings.ReplaceAll(name, "--", "-")+".json", schema)
}

func writeFile(name string, schema object) error {
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, name), append(text, '\n'), 0o644)
}
