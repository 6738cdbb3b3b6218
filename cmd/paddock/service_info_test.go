package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestServiceShowsReplicasDatabaseAndSettings(t *testing.T) {
	t.Parallel()
	d := newHarness(t, "--max-ttl=2h", "--event-retention=3d")
	d.hold(lock.Acquire{Locks: lock.One("a"), Holder: "h"})
	d.enqueue(lock.Acquire{Locks: lock.One("a"), Holder: "waiter"})
	var out string
	await.Until(t, "a heartbeat tells of the waiter and its connection", func() bool {
		out, _ = d.expectExit(exitOK, "service")
		return regexp.MustCompile(`(?m)alive .* [1-9]\d* +1 +0$`).MatchString(out)
	})
	host, err := os.Hostname()
	mustBeNil(t, err)
	at, err := url.Parse(d.base)
	mustBeNil(t, err)
	host = net.JoinHostPort(host, at.Port())
	for _, want := range []string{
		`Epoch: +1, since 2.*: installed`, `Grants: +not paused`, `Server: +PostgreSQL \d+\.\d+.*, primary, `, `Commits wait for: +no standby`,
		`Events: +since 2.*, kept for 3d`, `Tables: +\d+ KiB; the largest is \w+, \d+ KiB`, `(?m)^REPLICA .*CONNECTIONS  WAITERS  STREAMS$`,
		`(?m)^` + regexp.QuoteMeta(host) + ` +[0-9a-f]{16} +alive +[\d.]+m?s ago +\S+s +` + regexp.QuoteMeta(version().Version),
		`(?m)^max-ttl +2h +flag$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("it lacks %s:\n%s", want, out)
		}
	}
	if strings.Contains(out, "min-ttl") {
		t.Errorf("it shows a default:\n%s", out)
	}
	if names, _ := d.expectExit(exitOK, "service", "-o", "name"); names != host+"\n" {
		t.Errorf("the replicas are %q, want %q", names, host)
	}
	text, _ := d.expectExit(exitOK, "service", "-o", "json")
	var model api.ServiceInfo
	mustBeNil(t, json.Unmarshal([]byte(text), &model))
	if len(model.Databases) != 1 || model.Databases[0].AsOf == nil || len(model.Settings) < 30 {
		t.Errorf("it prints %s", text)
	}
}

// TestTheLogNamesTheReplica by the id that the service shows.
func TestTheLogNamesTheReplica(t *testing.T) {
	t.Parallel()
	d := &harness{T: t, env: map[string]string{"GOGC": "100"}}
	_, log, _ := d.startHere("serve", "--database-url", pgtest.URL(t), "--listen", "127.0.0.1:0")
	id := log.Await(t, `"msg":"listening".*"replica":"([0-9a-f]{16})"`)
	d.env["PADDOCK_URL"] = "http://" + log.Await(t, `"msg":"listening","address":"([^"]+)"`)
	await.Until(t, "the service shows "+id, func() bool {
		out, _ := d.expectExit(exitOK, "service")
		return strings.Contains(out, id)
	})
}

// TestTheServiceShowsNoSecret plants one in every setting that can have one, or be a file with one.
func TestTheServiceShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-s3cret"
	file := filepath.Join(t.TempDir(), "secret")
	mustBeNil(t, os.WriteFile(file, []byte(secret), 0o600))
	urls := []string{
		"postgres://me:" + secret + "@db.example/x", "postgres://me@db.example/x?password=" + secret, "postgres://me@db.example/x?passw%6Frd=" + secret,
		"postgres://me@db.example/x?sslpassword=" + secret, "postgres://me:12/" + secret + "@db.example/x", "host=db.example password=" + secret,
	}
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, io.Discard)
	mustBeNil(t, err)
	for _, f := range fileSettings(parser.Model) {
		target := f.Target.Type()
		if target.Kind() == reflect.Pointer {
			target = target.Elem()
		}
		if target.Kind() != reflect.String && target.Kind() != reflect.Slice {
			continue
		}
		var values []string
		switch f.Name {
		case databaseURLFlag:
			values = urls
		case cellFlagName:
			values = []string{"main=" + file, secret}
			for _, url := range urls[:5] {
				values = append(values, "main="+url+",spare="+url, "spare="+file+",main="+url)
			}
		case databaseURLFileFlag, "auth-file", "tls-cert", "tls-key", "tls-client-ca":
			values = []string{file}
		case "listen", "schema", "pooler-mode", "metrics-listen", "metrics-names", "cors-origin":
		default:
			t.Errorf("say here how a secret can be in --%s, or that none can", f.Name)
		}
		for _, value := range values {
			var line commandLine
			given := &sources{env: variablesOf(nil)}
			command, err := parse(&line, []string{"serve", "--" + f.Name, value}, given, io.Discard)
			mustBeNil(t, err)
			shown := servedSettings(given, command)
			if text := fmt.Sprint(shown); strings.Contains(text, secret) {
				t.Errorf("--%s %s is shown in %s", f.Name, value, text)
			}
			i := slices.IndexFunc(shown, func(s paddock.Setting) bool { return s.Name == f.Name })
			if i < 0 || shown[i].Value == "" || shown[i].Source != "flag" {
				t.Errorf("--%s is not shown as given: %v", f.Name, shown)
			}
		}
	}
}
