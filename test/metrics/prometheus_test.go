package metrics_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/freeport"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// A prometheus scrapes targets each second.
type prometheus struct {
	*testing.T
	base string
	dir  string
}

const configuration = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: paddock
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`

// startPrometheus starts a Prometheus with the rules, which scrapes the targets.
func startPrometheus(t *testing.T, rules string, targets ...string) *prometheus {
	t.Helper()
	p := &prometheus{T: t, dir: t.TempDir()}
	p.write("prometheus.yaml", configuration)
	p.write("rules.yaml", rules)
	p.scrape(targets...)
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	p.base = "http://" + freeport.Address(port)
	process := proctest.New(exec.Command(tools.Path(t, "prometheus"),
		"--config.file="+filepath.Join(p.dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(p.dir, "data"),
		"--web.listen-address="+freeport.Address(port)))
	process.Start(t)
	process.Stderr.Await(t, `(Server is ready to receive web requests)`)
	return p
}

// scrape sets the targets from now on.
func (p *prometheus) scrape(targets ...string) {
	p.Helper()
	list, err := json.Marshal([]map[string][]string{{"targets": targets}})
	if err != nil {
		p.Fatal(err)
	}
	p.write("targets.json", string(list))
}

func (p *prometheus) write(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		p.Fatal(err)
	}
}

// get decodes the data of an answer of Prometheus's API.
func (p *prometheus) get(path string, query url.Values, data any) {
	p.Helper()
	answer, err := http.Get(p.base + path + "?" + query.Encode())
	if err != nil {
		p.Fatal(err)
	}
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	err = errors.Join(json.NewDecoder(answer.Body).Decode(&body), answer.Body.Close())
	if err == nil && body.Status == "success" {
		err = json.Unmarshal(body.Data, data)
	}
	if err != nil || body.Status != "success" {
		p.Fatalf("%s: %s %s, %v", query, body.Status, body.Error, err)
	}
}

// series returns how many series the query has.
func (p *prometheus) series(query string) int {
	p.Helper()
	var data struct{ Result []json.RawMessage }
	p.get("/api/v1/query", url.Values{"query": {query}}, &data)
	return len(data.Result)
}

// firing returns the names of the alerts that fire, sorted.
func (p *prometheus) firing() []string {
	p.Helper()
	var data struct {
		Alerts []struct {
			State  string
			Labels struct {
				Alertname string `json:"alertname"`
			}
		}
	}
	p.get("/api/v1/alerts", nil, &data)
	var names []string
	for _, a := range data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels.Alertname)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// awaitFiring waits until each of the alerts has fired. On a busy machine one may be over before another begins.
func (p *prometheus) awaitFiring(alerts ...string) {
	p.Helper()
	missing := slices.Clone(alerts)
	p.eventually(fmt.Sprintf("the alerts %v fire", alerts), func() (bool, any) {
		firing := p.firing()
		missing = slices.DeleteFunc(missing, func(a string) bool { return slices.Contains(firing, a) })
		return len(missing) == 0, missing
	})
}

// eventually asks again each half second until the condition holds; if it does not, the test fails with what is
// missing.
func (p *prometheus) eventually(what string, holds func() (ok bool, missing any)) {
	p.Helper()
	for deadline := time.Now().Add(proctest.Patience); ; time.Sleep(time.Second / 2) {
		ok, missing := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("waited in vain until %s: %v", what, missing)
		}
	}
}
