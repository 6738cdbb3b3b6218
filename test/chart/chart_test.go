package chart_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

var update = flag.Bool("update", false, "write the README of the chart and the plain manifests instead of comparing them")

func TestEachSetOfValuesIsRenderedToValidManifests(t *testing.T) {
	t.Parallel()
	for _, values := range valueSets(t) {
		t.Run(strings.TrimPrefix(values, root), func(t *testing.T) {
			t.Parallel()
			if out, err := helm(t, "lint", "--strict", "--values", values); err != nil {
				t.Errorf("helm lint: %v\n%s", err, out)
			}
			text := render(t, values)
			if err := validate(t, text); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			if len(find(parse(t, text), "Deployment")) != 1 {
				t.Error("there is not one Deployment")
			}
		})
	}
}

// TestAllOptionsMakeEveryKind: testdata/all.yaml leaves nothing out.
func TestAllOptionsMakeEveryKind(t *testing.T) {
	t.Parallel()
	text := render(t, "testdata/all.yaml") + "---" + render(t, "testdata/default.yaml")
	templates, err := filepath.Glob(chartDir + "/templates/*.yaml")
	if err != nil || len(templates) < 8 {
		t.Fatal(templates, err)
	}
	for _, template := range templates {
		for _, kind := range regexp.MustCompile(`(?m)^kind: (\w+)$`).FindAllStringSubmatch(readFile(t, template), -1) {
			if !strings.Contains(text, "\n"+kind[0]+"\n") {
				t.Errorf("%s of %s is not rendered", kind[1], filepath.Base(template))
			}
		}
	}
	var set, all object
	for path, to := range map[string]*object{"testdata/all.yaml": &set, chartDir + "/values.yaml": &all} {
		if err := yaml.Unmarshal([]byte(readFile(t, path)), to); err != nil {
			t.Fatal(err)
		}
	}
	for name := range all {
		if _, ok := set[name]; !ok {
			t.Errorf("testdata/all.yaml does not set %s", name)
		}
	}
}

// TestValidationFindsErrors: schemas that accept everything would find none.
func TestValidationFindsErrors(t *testing.T) {
	t.Parallel()
	text := render(t, "testdata/all.yaml") + "---\n" + readFile(t, examples+"/cloudnative-pg/cluster.yaml")
	for right, wrong := range map[string]string{
		"maxSurge: 1":                "maxSurges: 1",
		"runAsNonRoot: true":         `runAsNonRoot: "yes"`,
		"policyTypes: [":             "policyType: [",
		"whenUnsatisfiable: ":        "unsatisfiable: ",
		"interval: 15s":              "interval: often",
		"severity: page":             "severity: [page]",
		"backoffLimit: 3":            "backoffLimit: three",
		"ingressClassName: ":         "ingressClass: ",
		"failoverQuorum: ":           "failover: ",
		"unhealthyPodEvictionPolicy": "evict",
	} {
		broken := strings.ReplaceAll(text, right, wrong)
		if broken == text {
			t.Errorf("the manifests have no %q", right)
		}
		if err := validate(t, broken); err == nil {
			t.Errorf("manifests with %q instead of %q are valid", wrong, right)
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"replica=2":                                         "'replica' not allowed",
		"database.url=postgres://x":                         "'url' not allowed",
		"image.digest=latest":                               "digest",
		"replicas=0":                                        "replicas",
		"database.sslMode=verify":                           "sslMode",
		"database.schema=Locks":                             "schema",
		"migration.by=hand":                                 "by",
		"drainDelaySeconds=10s":                             "drainDelaySeconds",
		"service.type=Headless":                             "type",
		"networkPolicy.databasePorts={}":                    "databasePorts",
		"extraArgs={max-ttl}":                               "extraArgs",
		"topologySpread.whenUnsatisfiable=no":               "whenUnsatisfiable",
		"tls.disabled=maybe":                                "disabled",
		"database.existingSecret=":                          "set database.existingSecret",
		"auth.existingSecret=":                              "set auth.existingSecret",
		"auth.disabled=true":                                "auth.existingSecret and auth.disabled contradict",
		"tls.existingSecret=":                               "set tls.existingSecret",
		"tls.disabled=true":                                 "tls.existingSecret and tls.disabled contradict",
		"ingress.enabled=true":                              "set ingress.host",
		"migration.by=serve,migration.existingSecret=owner": "migration.existingSecret is for the Job",
		"database.schema=public":                            "database.schema: public is not only Paddock's",
		"metrics.port=8080":                                 "metrics.port: 8080 is the port of the service",
		"extraArgs={--listen=:9000}":                        "extraArgs: --listen=:9000 is a setting of the chart",
		`podLabels.app\.kubernetes\.io/name=other`:          "podLabels: the chart sets app.kubernetes.io/name",
		"metrics.enabled=false,metrics.serviceMonitor.enabled=true": "metrics.serviceMonitor needs metrics.enabled",
	} {
		out, err := helm(t, "template", "--values", "testdata/default.yaml", "--set", set)
		if err == nil {
			t.Errorf("%s is rendered:\n%s", set, out)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is refused with %v, want %q", set, err, want)
		}
	}
}

// TestNamesStayText: YAML takes some names that Kubernetes allows for numbers and other values.
func TestNamesStayText(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"7", "1e3", "true"} {
		out, err := helmAs(t, release, "template", "--namespace", "2026", "--values", "testdata/all.yaml", "--set-string",
			"fullnameOverride=locks,database.schema=true,database.existingSecret=1,database.key=2,tls.existingSecret=3,"+
				"auth.existingSecret=4,ingress.className=5,ingress.tlsSecret=6,priorityClassName=7,serviceAccount.name=8")
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, out); err != nil {
			t.Errorf("the release %s: %v", release, err)
		}
	}
}

// TestANameThatNoServiceCanHaveIsRefused: names of releases may begin with a digit and contain dots.
func TestANameThatNoServiceCanHaveIsRefused(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"7", "locks.eu", "paddock.eu"} {
		out, err := helmAs(t, release, "template", "--values", "testdata/default.yaml")
		if err == nil {
			t.Errorf("the release %s is rendered:\n%s", release, out)
		} else if !strings.Contains(err.Error(), "set fullnameOverride") {
			t.Errorf("the release %s is refused with %v", release, err)
		}
		if _, err := helmAs(t, release, "template", "--values", "testdata/default.yaml", "--set", "fullnameOverride=locks"); err != nil {
			t.Errorf("the release %s with another name for its objects: %v", release, err)
		}
	}
}

// A podSpec is what pods may do.
type podSpec struct {
	AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []container
	Volumes    []volume
}

type container struct {
	Args         []string
	Env          []struct{ Name, Value string }
	VolumeMounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Add, Drop []string }
	} `yaml:"securityContext"`
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
}

type volume struct {
	Name   string
	Secret struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode int    `yaml:"defaultMode"`
		Items       []struct{ Key, Path string }
	}
}

// pods returns the specifications of the pods of all kinds, by kind.
func pods(t *testing.T, all []object) map[string]podSpec {
	t.Helper()
	specs := make(map[string]podSpec)
	for _, kind := range []string{"Deployment", "Job"} {
		for _, o := range find(all, kind) {
			specs[kind] = decode[podSpec](t, o, "spec", "template", "spec")
		}
	}
	return specs
}

// TestPodsHaveNoRights meets the restricted profile of the Pod Security Standards, without a token and without a place
// to write.
func TestPodsHaveNoRights(t *testing.T) {
	t.Parallel()
	for _, values := range valueSets(t) {
		for kind, pod := range pods(t, parse(t, render(t, values))) {
			s := pod.SecurityContext
			if !s.RunAsNonRoot || s.RunAsUser != 65532 || s.SeccompProfile.Type != "RuntimeDefault" {
				t.Errorf("%s: the %s runs with %+v", values, kind, s)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("%s: the %s gets a token", values, kind)
			}
			for _, c := range pod.Containers {
				s := c.SecurityContext
				if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
					!reflect.DeepEqual(s.Capabilities.Drop, []string{"ALL"}) || len(s.Capabilities.Add) > 0 {
					t.Errorf("%s: the container of the %s has %+v", values, kind, s)
				}
			}
			for _, v := range pod.Volumes {
				if v.Secret.SecretName == "" || v.Secret.DefaultMode != 0o440 {
					t.Errorf("%s: the volume %s of the %s is %+v; want a Secret with the mode 0440", values, v.Name, kind, v.Secret)
				}
			}
		}
	}
}

// TestTheGraceOfTerminationCoversTheDrain compares it with what serve may take after SIGTERM: the delay, its limits in
// package server, and five seconds to leave the database.
func TestTheGraceOfTerminationCoversTheDrain(t *testing.T) {
	t.Parallel()
	var limits time.Duration
	source := readFile(t, root+"/server/server.go")
	for _, name := range []string{"maxDrain", "drainMargin"} {
		found := regexp.MustCompile(`\n\t` + name + ` +=\s+(\d+) \* time\.Second`).FindStringSubmatch(source)
		if found == nil {
			t.Fatalf("package server has no %s", name)
		}
		seconds, err := time.ParseDuration(found[1] + "s")
		if err != nil {
			t.Fatal(err)
		}
		limits += seconds
	}
	for _, values := range []string{"testdata/default.yaml", "testdata/all.yaml"} {
		pod := pods(t, parse(t, render(t, values)))["Deployment"]
		delay, err := time.ParseDuration(flagOf(t, pod.Containers[0].Args, "--drain-delay"))
		if err != nil || delay == 0 {
			t.Fatalf("the drain delay is %v, %v", delay, err)
		}
		if grace := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; grace < delay+limits+5*time.Second {
			t.Errorf("%s: pods are killed after %v, but serve may take %v and leave the database then", values, grace, delay+limits)
		}
	}
}

// flagOf returns the value of a flag.
func flagOf(t *testing.T, args []string, name string) string {
	t.Helper()
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	t.Fatalf("%v have no %s", args, name)
	return ""
}

// TestMonitoringIsThatOfTheRepository: the rule and the dashboard have no second source.
func TestMonitoringIsThatOfTheRepository(t *testing.T) {
	t.Parallel()
	all := parse(t, render(t, "testdata/all.yaml"))
	var want struct{ Groups any }
	if err := yaml.Unmarshal([]byte(readFile(t, root+"/deploy/prometheus/alerts.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	if got := decode[any](t, find(all, "PrometheusRule")[0], "spec", "groups"); want.Groups == nil || !reflect.DeepEqual(got, want.Groups) {
		t.Errorf("the groups of the rule are %v, want %v", got, want.Groups)
	}
	var shown, dashboard any
	data := decode[map[string]string](t, find(all, "ConfigMap")[0], "data")["paddock.json"]
	if err := json.Unmarshal([]byte(data), &shown); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(readFile(t, root+"/deploy/grafana/paddock.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(shown, dashboard) {
		t.Error("the dashboard differs")
	}
	selected := decode[map[string]string](t, find(all, "ServiceMonitor")[0], "spec", "selector", "matchLabels")
	matches := 0
	for _, service := range find(all, "Service") {
		labels := decode[map[string]string](t, service, "metadata", "labels")
		fits := true
		for name, value := range selected {
			fits = fits && labels[name] == value
		}
		if fits {
			matches++
		}
	}
	if matches != 1 {
		t.Errorf("the ServiceMonitor selects %d Services", matches)
	}
}

// TestPlainManifestsAreRendered compares deploy/kubernetes with the chart.
func TestPlainManifestsAreRendered(t *testing.T) {
	t.Parallel()
	text := render(t, plain+"/values.yaml", "--no-hooks", "--namespace", "paddock")
	compare(t, plain+"/paddock.yaml", "# Rendered from deploy/helm/paddock with values.yaml; do not edit it, run make chart.\n"+text)
}

// TestTheReadmeListsAllValues compares the README of the chart with values.yaml.
func TestTheReadmeListsAllValues(t *testing.T) {
	t.Parallel()
	run := exec.CommandContext(t.Context(), tools.Path(t, "helm-docs"), "--chart-search-root", chartDir, "--dry-run", "--log-level", "error")
	text, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.TrimRight(string(text), "\n") + "\n"
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)` .*\\| +\\|$").FindAllStringSubmatch(readme, -1) {
		t.Errorf("values.yaml does not say what %s is", row[1])
	}
	compare(t, chartDir+"/README.md", readme)
}

// compare compares a generated file with what it should be, or writes it with -update.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if readFile(t, path) != want {
		t.Errorf("%s is not up to date; run make chart", strings.TrimPrefix(path, root+"/"))
	}
}
