package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// writeConfig returns a configuration file with the text, which only its owner can read.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "paddock.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settingsOf returns what paddock config prints, by setting.
func settingsOf(t *testing.T, env map[string]string, args ...string) map[string]settingJSON {
	t.Helper()
	code, stdout, stderr := call(t, env, append([]string{"config", "-o", "json"}, args...)...)
	var list []settingJSON
	if err := json.Unmarshal([]byte(stdout), &list); code != exitOK || err != nil {
		t.Fatalf("%v: exit code %d, %v:\n%s", args, code, err, stderr)
	}
	settings := map[string]settingJSON{}
	for _, s := range list {
		settings[s.Setting] = s
	}
	return settings
}

func TestFlagsWinOverVariablesOverTheFileOverDefaults(t *testing.T) {
	t.Parallel()
	const text = "# a comment\nmax-ttl = \"2h\"\nmax-waiters = 3\nrate-per-key = 0.5\nmigrate = true\nmetrics-names = [\"a\", \"b\"]\n" +
		"listen = \"127.0.0.1:3\"\nlog-level = \"warn\"\nno-auth = true\n"
	for _, c := range []struct {
		setting string
		env     map[string]string
		args    []string
		value   any
		source  string // as the table shows it; FILE stands for its path
	}{
		{"max-grace", nil, nil, "1m", "default"},
		{"event-retention", nil, nil, "7d", "default"},
		{"tls-cert", nil, nil, nil, "default"},
		{"max-ttl", nil, nil, "2h", "FILE:2"},
		{"max-waiters", nil, nil, 3.0, "FILE:3"},
		{"rate-per-key", nil, nil, 0.5, "FILE:4"},
		{"migrate", nil, nil, true, "FILE:5"},
		{"metrics-names", nil, nil, []any{"a", "b"}, "FILE:6"},
		{"log-level", nil, nil, "warn", "FILE:8"},
		{"no-auth", nil, nil, true, "FILE:9"},
		{"listen", map[string]string{"PADDOCK_LISTEN": ""}, nil, "127.0.0.1:3", "FILE:7"},
		{"listen", map[string]string{"PADDOCK_LISTEN": "127.0.0.1:2"}, nil, "127.0.0.1:2", "PADDOCK_LISTEN"},
		{"listen", map[string]string{"PADDOCK_LISTEN": "127.0.0.1:2"}, []string{"--listen=127.0.0.1:1"}, "127.0.0.1:1", "--listen"},
		{"listen", nil, []string{"--listen=127.0.0.1:1"}, "127.0.0.1:1", "--listen"},
		{"migrate", map[string]string{"PADDOCK_MIGRATE": "false"}, nil, false, "PADDOCK_MIGRATE"},
		{"metrics-names", nil, []string{"--metrics-names=c"}, []any{"c"}, "--metrics-names"},
		{"database-url", map[string]string{"DATABASE_URL": "postgres://a@b/c"}, nil, "postgres://a@b/c", "DATABASE_URL"},
	} {
		path := writeConfig(t, text)
		got := settingsOf(t, c.env, append(c.args, "--config", path)...)[c.setting]
		if want := strings.Replace(c.source, "FILE", path, 1); !reflect.DeepEqual(got.Value, c.value) || got.sourceCell() != want {
			t.Errorf("%s with %v %v is %v from %s; want %v from %s", c.setting, c.env, c.args, got.Value, got.sourceCell(), c.value, want)
		}
		env := map[string]string{"PADDOCK_CONFIG": path}
		if got := settingsOf(t, env)["max-ttl"]; got.Value != "2h" {
			t.Errorf("with PADDOCK_CONFIG the greatest TTL is %v", got.Value)
		}
		env["PADDOCK_CONFIG"] = path + ".none"
		if got := settingsOf(t, env, "--config", path)["max-ttl"]; got.Value != "2h" {
			t.Errorf("with --config and another PADDOCK_CONFIG the greatest TTL is %v", got.Value)
		}
	}
}

// TestTheURLAndItsFileStandInForEachOther: what comes from the source that wins is used, whichever of the two it is.
func TestTheURLAndItsFileStandInForEachOther(t *testing.T) {
	t.Parallel()
	const url = "postgres://a@b/c"
	for _, c := range []struct {
		text string
		env  map[string]string
		args []string
		url  any
		file any
	}{
		{`database-url-file = "f"`, nil, []string{"--database-url=" + url}, url, nil},
		{`database-url-file = "f"`, map[string]string{"DATABASE_URL": url}, nil, url, nil},
		{`database-url = "` + url + `"`, map[string]string{"PADDOCK_DATABASE_URL_FILE": "f"}, nil, nil, "f"},
		{`database-url = "` + url + `"`, nil, []string{"--database-url-file=f"}, nil, "f"},
		{"", map[string]string{"PADDOCK_DATABASE_URL_FILE": "f"}, []string{"--database-url=" + url}, url, nil},
		{"database-url-file = \"f\"\ndatabase-url = \"" + url + `"`, nil, nil, url, "f"}, // the file is used
	} {
		got := settingsOf(t, c.env, append(c.args, "--config", writeConfig(t, c.text))...)
		if got["database-url"].Value != c.url || got["database-url-file"].Value != c.file {
			t.Errorf("%+v: %v, %v", c, got["database-url"], got["database-url-file"])
		}
	}
}

func TestWrongConfigurationFilesAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listn = \"127.0.0.1:1\"":                      `:1: unknown key "listn"; did you mean listen?`,
		"\n\nmax_ttl = \"1h\"":                         `:3: unknown key "max_ttl"; did you mean max-ttl?`,
		"PADDOCK_TLS_CERT = \"x\"":                     `:1: unknown key "PADDOCK_TLS_CERT"; did you mean tls-cert?`,
		"output = \"json\"":                            `unknown key "output"; the keys are the flags of paddock serve`,
		"check = true":                                 `unknown key "check"`,
		"config = \"x\"":                               `unknown key "config"`,
		"max-ttl = \"1h\"\n[serve]\nlisten = \"x:1\"":  `:2: serve is a table, and settings are in none; remove [serve]`,
		"max-ttl = 60":                                 `:1: max-ttl: give a text in quotes: max-ttl = "24h"`,
		"max-ttl = \"1 hour\"":                         `:1: max-ttl: "1 hour" is not a duration; give numbers`,
		"max-ttl = \"-1h\"":                            "max-ttl: is -1h0m0s; give 0s or more",
		"max-ttl = \"\"":                               "max-ttl: is empty; give a value, or leave the key out",
		"max-waiters = \"3\"":                          "max-waiters: give a whole number, without quotes",
		"max-waiters = 3.5":                            "max-waiters: give a whole number, without quotes",
		"max-connections = true":                       "max-connections: give a whole number, without quotes",
		"rate-per-key = \"3\"":                         "rate-per-key: give a number, without quotes",
		"migrate = \"true\"":                           "migrate: give true or false, without quotes",
		"metrics-names = \"a\"":                        `metrics-names: give a list of texts in quotes: metrics-names = ["PREFIX"]`,
		"metrics-names = [1]":                          "metrics-names: give a list of texts",
		"pooler-mode = \"session\"":                    `pooler-mode: "session" is none of its values; give none or transaction`,
		"schema = \"Team B\"":                          ":1: schema: ",
		"log-level = \"loud\"":                         `:1: log-level: "loud" is not a level. Minimum level to log: debug, info, warn or error`,
		"listen = 127.0.0.1:1":                         `:1: not TOML: `,
		"max-ttl = \"1h\"\nmax-ttl = \"2h\"":           `:2: max-ttl is given twice; leave one of them out`,
		"max-waiters = 99999999999999999999":           ":1: the number 99999999999999999999 is out of range; give one of fewer digits",
		"max-ttl =":                                    ":1: the value is missing; give KEY = VALUE, with a text in quotes",
		"metrics-names = [\"a\",":                      ":1: the value is missing; give KEY = VALUE",
		"default-ttl = \"0s\"":                         ":1: default-ttl: is 0s; give more, or leave it out for the default: 30s, or",
		"\ndatabase-url = postgres://a:s3cret@b/c":     ":2: not TOML: the line is not repeated here",
		"database-url = \"postgres://a:s3cret@b/c\" x": ":1: not TOML: the line is not repeated here",
	} {
		for _, command := range []string{"serve", "config", "migrate version", "epoch list", "key list", "healthcheck"} {
			path := writeConfig(t, text)
			code, stdout, stderr := call(t, nil, append(strings.Fields(command), "--config", path)...)
			if code != exitUsage || !strings.Contains(stderr, "paddock: "+path+":") || !strings.Contains(stderr, want) || stdout != "" || strings.Contains(stderr, "s3cret") {
				t.Errorf("%s with %q: exit code %d, want %q in:\n%s%s", command, text, code, want, stdout, stderr)
			}
		}
	}
	path := writeConfig(t, "listn = \"x\"\nlisten = \"127.0.0.1:1\"\nmax-ttl = 1\nmigrate = 1")
	code, _, stderr := call(t, nil, "serve", "--check", "--config", path)
	for _, line := range []int{1, 3, 4} {
		if !strings.Contains(stderr, fmt.Sprintf("%s:%d: ", path, line)) || code != exitUsage {
			t.Errorf("exit code %d, want line %d in:\n%s", code, line, stderr)
		}
	}
	if code, _, stderr := call(t, nil, "serve", "--config", path+".none"); code != exitUsage || !strings.Contains(stderr, "--config: open ") {
		t.Errorf("without the file: exit code %d:\n%s", code, stderr)
	}
}

// TestAReadableFileMayHaveNoPassword and may have everything else.
func TestAReadableFileMayHaveNoPassword(t *testing.T) {
	t.Parallel()
	for url, refused := range map[string]bool{
		"postgres://a:s3cret@b/c": true, "postgres://a@b/c?password=s3cret": true, "postgres://a@b/c?passw%6Frd=s3cret": true,
		"host=b password=s3cret": true, "postgres://a@b/c": false, "postgres:///c?host=/run/postgresql": false,
	} {
		for mode, others := range map[os.FileMode]bool{0o644: true, 0o604: true, 0o640: false, 0o600: false} {
			path := writeConfig(t, `database-url = "`+url+`"`)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := call(t, nil, "config", "--config", path)
			if wrong := code == exitUsage && strings.Contains(stderr, "run chmod o-r "+path); wrong != (refused && others) ||
				!wrong && code != exitOK || strings.Contains(stdout+stderr, "s3cret") {
				t.Errorf("%s in a file with mode %o: exit code %d:\n%s%s", url, mode, code, stdout, stderr)
			}
		}
	}
}

func TestConfigShowsNoPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://me:s3cret@db.example:5433/x?sslmode=disable":      "postgres://me:xxxxx@db.example:5433/x?sslmode=disable",
		"postgres://me@db.example/x?password=s3cret&pool_max_conns=9": "postgres://me@db.example/x?password=xxxxx&pool_max_conns=9",
		"postgres://me@db.example/x?passw%6Frd=s3cret":                "postgres://me@db.example/x?passw%6Frd=xxxxx",
		"postgres://me:12/s3cret@db.example/x":                        "xxxxx",
		"host=db.example password=s3cret":                             "xxxxx",
		"postgres://me@db.example/x":                                  "postgres://me@db.example/x",
	} {
		for _, format := range []string{"table", "json"} {
			code, stdout, stderr := call(t, map[string]string{"PADDOCK_DATABASE_URL": url}, "config", "-o", format)
			if text := strings.ReplaceAll(stdout, `\u0026`, "&"); code != exitOK || strings.Contains(stdout+stderr, "s3cret") || !strings.Contains(text, want) {
				t.Errorf("%s: exit code %d, want %s in:\n%s%s", url, code, want, stdout, stderr)
			}
		}
	}
}

// TestCommandsShareTheConfigurationFile runs each on what the file says, and nothing else.
func TestCommandsShareTheConfigurationFile(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	keys := filepath.Join(t.TempDir(), "keys.json")
	path := writeConfig(t, fmt.Sprintf("database-url = %q\nschema = \"team_b\"\nauth-file = %q\n", databaseURL, keys))
	for _, c := range []struct{ command, want string }{
		{"migrate up", "The schema team_b was at version 0"},
		{"migrate version", "The schema team_b is at version"},
		{"epoch new --reason=x", ""},
		{"key new --role=admin me", "pk_"},
		{"key list", "admin"},
		{"serve --check", "1 valid in " + keys},
	} {
		code, stdout, stderr := call(t, map[string]string{"PADDOCK_CONFIG": path}, strings.Fields(c.command)...)
		if code != exitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: exit code %d, want %q in:\n%s%s", c.command, code, c.want, stdout, stderr)
		}
	}
	p := start(t, "serve", "--config", path, "--listen=127.0.0.1:0")
	address := p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
	path = writeConfig(t, fmt.Sprintf("listen = %q", address))
	if code, stdout, stderr := call(t, nil, "healthcheck", "--config", path); code != exitOK {
		t.Errorf("healthcheck: exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, nil, "run", "--config", path, "x", "--", "true"); code != exitUsage || !strings.Contains(stderr, "unknown flag --config") {
		t.Errorf("run: exit code %d:\n%s", code, stderr)
	}
}

// sampleFile is the configuration file of the packages.
const sampleFile = "../../deploy/package/paddock.toml"

const sampleIntro = `# The configuration of paddock serve, as paddock.service starts it, and of the other commands with --config. Each line
# that is commented out has a default, or an example. Flags and environment variables win over this file. After a change
# run paddock serve --check --config FILE, and restart the service.
#
# Users other than root and paddock cannot read this file, because database-url may have a password. With PostgreSQL on
# this machine, its role paddock needs none:
#
#   sudo -u postgres createuser paddock && sudo -u postgres createdb -O paddock paddock
`

// renderSample returns the configuration file of the packages, for the flags of a parser.
func renderSample(model *kong.Application) string {
	var b strings.Builder
	b.WriteString(sampleIntro)
	for _, f := range fileSettings(model) {
		value := f.Default
		if example, ok := map[string]string{
			"database-url": "postgres:///paddock?host=/var/run/postgresql", "database-url-file": "/etc/paddock/database-url",
			"cell": "main=/etc/paddock/main.url", "default-ttl": "30s", "metrics-listen": "127.0.0.1:9090", "metrics-names": "billing", "cors-origin": "https://app.example",
			"auth-file": "/etc/paddock/keys.json", "no-auth": "false", "plain-http": "false", "tls-cert": "/etc/paddock/cert.pem",
			"tls-key": "/etc/paddock/key.pem", "tls-client-ca": "/etc/paddock/client-ca.pem", "max-connections": "20000",
			"migrate": "true", "allow-hold": "false",
		}[f.Name]; ok {
			value = example
		}
		switch {
		case f.IsSlice():
			value = fmt.Sprintf("[%q]", value)
		case !f.IsBool() && numberKind(f.Target.Type()) == reflect.Invalid:
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&b, "\n%s\n#%s = %s\n", wrap("# "+f.Help, "# "), f.Name, value)
	}
	return b.String()
}

func TestConfigurationPagesSampleIsAccepted(t *testing.T) {
	t.Parallel()
	parser, err := newParser(new(commandLine), &sources{env: variablesOf(nil)}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := renderSample(parser.Model)
	if *update {
		if err := os.WriteFile(sampleFile, []byte(want), 0o644); err != nil { //nolint:gosec // it has no secret
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("deploy/package/paddock.toml does not have the flags; run go test ./cmd/paddock -run TestConfigurationPage -update")
	}
	lines := strings.Split(string(got), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") {
			lines[i] = strings.TrimPrefix(line, "#")
		}
	}
	for _, text := range []string{string(got), strings.Join(lines, "\n")} {
		settings := fileSettings(parser.Model)
		file, err := readConfigFile(writeConfig(t, text), settings)
		if err != nil || text != string(got) && len(file.values) != len(settings) {
			t.Errorf("%v, %+v", err, file)
		}
	}
}

// TestAWrongValueIsNamedByItsSource, and not by the flag that nobody gave.
func TestAWrongValueIsNamedByItsSource(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PADDOCK_DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing"}
	for variable, c := range map[string]struct{ value, args, want string }{
		"PADDOCK_MIN_TTL":     {"2d", "serve", "paddock: PADDOCK_MIN_TTL (--min-ttl) is 2d, which is longer than --max-ttl, 1d"},
		"PADDOCK_MAX_TTL":     {"soon", "serve", `paddock: PADDOCK_MAX_TTL (--max-ttl): "soon" is not a duration`},
		"PADDOCK_MAX_WAITERS": {"many", "serve", `paddock: PADDOCK_MAX_WAITERS (--max-waiters): "many" is not a whole number`},
		"PADDOCK_POOLER_MODE": {"x", "serve", `paddock: PADDOCK_POOLER_MODE (--pooler-mode): "x" is not one of its values`},
		"PADDOCK_DRAIN_DELAY": {"-1s", "serve", "paddock: PADDOCK_DRAIN_DELAY (--drain-delay) is -1s"},
		"PADDOCK_URL":         {"nowhere", "list", "paddock: PADDOCK_URL (--url): "},
		"PADDOCK_CA":          {"/nowhere", "list", "paddock: PADDOCK_CA (--ca): "},
		"PADDOCK_LEASE_ID":    {"x", "release a", "paddock: PADDOCK_LEASE_ID (--lease-id): is not a random UUID"},
	} {
		with := maps.Clone(env)
		with[variable] = c.value
		if code, _, stderr := call(t, with, strings.Fields(c.args)...); code != exitUsage || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("%s=%s: exit code %d, want %q in:\n%s", variable, c.value, code, c.want, stderr)
		}
	}
	env["PADDOCK_MIN_TTL"] = "2d"
	if _, stdout, _ := call(t, env, "serve", "--check"); !strings.Contains(stdout, "PADDOCK_MIN_TTL (--min-ttl) is 2d") {
		t.Errorf("--check printed:\n%s", stdout)
	}
}
