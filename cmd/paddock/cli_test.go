package main

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestUsageErrorsAreExplained(t *testing.T) {
	t.Parallel()
	const url = "--database-url=postgres://nobody@127.0.0.1:1/nothing"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":                          {[]string{"--log-level=info"}, `expected one of "serve"`},
		"an unknown command":                  {[]string{"unlock"}, "unlock"},
		"an unknown flag":                     {[]string{"serve", "--port=80"}, "paddock serve --help"},
		"an unknown level":                    {[]string{"--log-level=loud", "version"}, "--log-level"},
		"serve without a database":            {[]string{"serve"}, "PADDOCK_DATABASE_URL"},
		"serve with a malformed database URL": {[]string{"serve", "--database-url=postgres://a b:x@y:z"}, "malformed"},
		"serve with an unknown sslmode": {[]string{"serve", "--database-url=postgres://a@b/c?sslmode=maybe"},
			"sslmode"},
		"serve with bounds that contradict":    {[]string{"serve", url, "--min-ttl=10s", "--max-ttl=1s"}, "the default TTL"},
		"serve without a port":                 {[]string{"serve", url, "--listen=127.0.0.1"}, "HOST:PORT"},
		"dev beyond loopback":                  {[]string{"dev", "--ephemeral", "--listen=0.0.0.0:0"}, "loopback"},
		"dev with --ephemeral and --dir":       {[]string{"dev", "--ephemeral", "--dir=/tmp/x"}, "can't be used together"},
		"migrate down without steps":           {[]string{"migrate", "down", url}, "--steps"},
		"migrate down by zero":                 {[]string{"migrate", "down", url, "--yes", "--steps=0"}, "1 or more"},
		"migrate down without --yes":           {[]string{"migrate", "down", url, "--steps=1"}, "--yes"},
		"demo with an invalid URL":             {[]string{"demo", "--url=here"}, "--url: "},
		"demo with a zero TTL":                 {[]string{"demo", "--ttl=0s"}, "--ttl is 0s"},
		"serve with a negative timeout":        {[]string{"serve", url, "--request-timeout=-1s"}, "--request-timeout"},
		"serve with renewals that linger long": {[]string{"serve", url, "--renewal-linger=21ms"}, "use 0 to 20ms"},
		"serve with too many batch workers":    {[]string{"serve", url, "--batch-workers=100000"}, "batch workers"},
		"serve in a schema with a capital":     {[]string{"serve", url, "--schema=Team"}, `--schema: "Team" cannot name the schema; use at most 40`},
		"migrate up in a reserved schema":      {[]string{"migrate", "up", url, "--schema=pg_paddock"}, "PostgreSQL reserves it"},
		"dev in a schema with a quote":         {[]string{"dev", "--ephemeral", `--schema=a"b`}, "cannot name the schema"},
		"migrate down without a schema":        {[]string{"migrate", "down", url, "--schema=", "--to=0", "--yes"}, "--schema: is empty; give a name"},
		"serve with a short event retention":   {[]string{"serve", url, "--event-retention=1s"}, "event retention"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, nil, c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit code %d, want %d and %q in:\n%s%s", code, exitUsage, c.want, stdout, stderr)
			}
		})
	}
}

func TestEnvironmentVariablesSetFlags(t *testing.T) {
	t.Parallel()
	parsed := func(env map[string]string, args ...string) serveCommand {
		var line commandLine
		if _, err := parse(&line, append([]string{"serve"}, args...), variablesOf(env), t.Output()); err != nil {
			t.Fatal(err)
		}
		return line.Serve
	}
	env := map[string]string{"DATABASE_URL": "usual", "PADDOCK_LISTEN": "127.0.0.1:1", "PADDOCK_MIN_TTL": "",
		"PADDOCK_NO_AUTH": "true"}
	got := parsed(env, "--listen=127.0.0.1:2")
	if got.URL != "usual" || got.Listen != "127.0.0.1:2" {
		t.Errorf("URL %q, listen %q: want the variable and the flag", got.URL, got.Listen)
	}
	if got.MinTTL != lock.MinTTL {
		t.Errorf("least TTL %v: an empty variable must count as unset", got.MinTTL)
	}
	if got.NoAuth {
		t.Error("a variable has disabled authentication")
	}
	env["PADDOCK_DATABASE_URL"] = "ours"
	if got := parsed(env); got.URL != "ours" || got.Listen != "127.0.0.1:1" {
		t.Errorf("URL %q, listen %q: want the PADDOCK_ variables", got.URL, got.Listen)
	}
}
