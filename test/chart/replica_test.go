package chart_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// TestTheContainersRun starts what the containers start, with their arguments, variables and files, on this machine: the
// migration, and then a replica, which answers the probes, and ends in time with the exit code 0.
func TestTheContainersRun(t *testing.T) {
	t.Parallel()
	secrets := map[string][]byte{"url": []byte(pgtest.EmptyURL(t)), "keys.json": newKeys(t)} // by key
	secrets["tls.crt"], secrets["tls.key"] = newCertificate(t)
	for _, set := range []struct{ name, scheme string }{{"default", "HTTPS"}, {"minimal", "HTTP"}} { // the second finds the tables
		name, scheme := set.name, set.scheme
		all := pods(t, parse(t, render(t, "testdata/"+name+".yaml", "--set", "drainDelaySeconds=1")))
		if job, ok := all["Job"]; ok {
			p := start(t, job, secrets)
			if code := p.Exit(t); code != 0 {
				t.Fatalf("the migration ended with %d: %s", code, p.Stderr)
			}
		}
		p := start(t, all["Deployment"], secrets)
		address := p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
		c := all["Deployment"].Containers[0]
		for _, probe := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe.HTTPGet.Scheme != scheme {
				t.Errorf("%s: a probe uses %s, want %s", name, probe.HTTPGet.Scheme, scheme)
			}
			// Kubernetes does not check the certificate either.
			via := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			answer, err := via.Get(strings.ToLower(scheme) + "://" + address + probe.HTTPGet.Path)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s is answered %v, %v", name, probe.HTTPGet.Path, answer, err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if code := p.Signal(t, syscall.SIGTERM); code != 0 {
			t.Errorf("%s: the replica ended with %d: %s", name, code, p.Stderr)
		}
	}
}

// start runs the container of a pod on this machine, on loopback, with its Secrets as files.
func start(t *testing.T, pod podSpec, secrets map[string][]byte) *proctest.Process {
	t.Helper()
	dir, c := t.TempDir(), pod.Containers[0]
	for _, mount := range c.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != mount.Name {
				continue
			}
			items := v.Secret.Items
			if len(items) == 0 { // all keys of a Secret of the type kubernetes.io/tls
				items = []struct{ Key, Path string }{{"tls.crt", "tls.crt"}, {"tls.key", "tls.key"}}
			}
			for _, item := range items {
				path := filepath.Join(dir, mount.Path, item.Path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, secrets[item.Key], 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	local := strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:9464", "127.0.0.1:0", "/etc/paddock/", dir+"/etc/paddock/")
	run := exec.Command(built.Path(t))
	for _, arg := range c.Args {
		run.Args = append(run.Args, local.Replace(arg))
	}
	for _, variable := range c.Env {
		run.Env = append(run.Env, variable.Name+"="+local.Replace(variable.Value))
	}
	p := proctest.New(run)
	p.Start(t)
	return p
}

// newKeys returns a file of API keys.
func newKeys(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	p := built.Start(t, "key", "new", "--auth-file", path, "--role", "lock", "test")
	if code := p.Exit(t); code != 0 {
		t.Fatalf("paddock key new ended with %d: %s", code, p.Stderr)
	}
	return []byte(readFile(t, path))
}

// newCertificate returns the certificate of Go's test server, and its key, in PEM.
func newCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
