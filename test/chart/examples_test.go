package chart_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestExamplesAreComplete: their manifests are valid, and whatever Secret their values name is among them, is made by
// CloudNativePG, or is one that docs/deploy.md makes.
func TestExamplesAreComplete(t *testing.T) {
	t.Parallel()
	page := readFile(t, root+"/docs/deploy.md")
	for _, values := range valueSets(t) {
		if !strings.HasPrefix(values, examples) && !strings.HasPrefix(values, plain) {
			continue
		}
		keys := map[string][]string{} // of each Secret
		for name, made := range map[string][]string{"paddock-auth": {"keys.json"}, "paddock-tls": {"tls.crt"}, "paddock-database": {"url"}} {
			if strings.Contains(page, " "+name+" ") {
				keys[name] = made
			}
		}
		manifests, err := filepath.Glob(filepath.Dir(values) + "/[^v]*.yaml")
		if err != nil || len(manifests) == 0 {
			t.Fatalf("%s has no manifests: %v", filepath.Dir(values), err)
		}
		for _, path := range manifests {
			text := readFile(t, path)
			if err := validate(t, text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			for _, secret := range find(parse(t, text), "Secret") {
				for key := range decode[map[string]string](t, secret, "stringData") {
					name := decode[string](t, secret, "metadata", "name")
					keys[name] = append(keys[name], key)
				}
			}
			for _, cluster := range find(parse(t, text), "Cluster") {
				name := decode[string](t, cluster, "metadata", "name")
				keys[name+"-app"], keys[name+"-ca"] = []string{"uri", "username", "password"}, []string{"ca.crt"}
			}
		}
		for kind, pod := range pods(t, parse(t, render(t, values))) {
			for _, v := range pod.Volumes {
				if _, ok := keys[v.Secret.SecretName]; !ok {
					t.Errorf("%s: the %s needs the Secret %s, which nothing makes", values, kind, v.Secret.SecretName)
				}
				for _, item := range v.Secret.Items {
					if !slices.Contains(keys[v.Secret.SecretName], item.Key) {
						t.Errorf("%s: the Secret %s has no %s", values, v.Secret.SecretName, item.Key)
					}
				}
			}
		}
	}
}
