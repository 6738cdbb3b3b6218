package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock/lock"
)

// TestUsageErrorsAreExplained, before anything is done: there is neither a service nor a database.
func TestUsageErrorsAreExplained(t *testing.T) {
	t.Parallel()
	const (
		id    = " --lease-id=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
		serve = "serve --database-url=postgres://nobody@127.0.0.1:1/nothing"
		down  = "migrate down --database-url=postgres://nobody@127.0.0.1:1/nothing --yes"
		key   = "key new --auth-file=/nowhere/keys.json --role=read"
	)
	for args, want := range map[string]string{
		"--log-level=info":         "the command is missing; give one, as in paddock run",
		"unlock":                   "unlock",
		"serve --port=80":          "paddock serve --help",
		"--log-level=loud version": "--log-level",

		"serve": "PADDOCK_DATABASE_URL",
		"serve --database-url=postgres://a@b/c?sslmode=maybe":                      "sslmode",
		serve + " --min-ttl=2h --max-ttl=1h":                                       "--min-ttl is 2h, which is longer than --max-ttl, 1h; lower one",
		serve + " --min-ttl=1ms":                                                   "--min-ttl is 1ms; give 100ms or more",
		serve + " --max-ttl=2d":                                                    "--max-ttl is 2d; give 1d or less",
		serve + " --default-ttl=2h --max-ttl=1h":                                   "--default-ttl is 2h; give 100ms to 1h, which are --min-ttl and --max-ttl",
		serve + " --max-grace=1h":                                                  "--max-grace is 1h; give 1m or less",
		serve + " --listen=127.0.0.1:70000":                                        `--listen 127.0.0.1:70000: "70000" is no port; give a number from 0 to 65535`,
		serve + " --listen=127.0.0.1:9 --metrics-listen=127.0.0.1:9":               "--metrics-listen 127.0.0.1:9 is the address of --listen; give another one",
		"dev --ephemeral --listen=unix:/tmp/x.sock":                                "--listen unix:/tmp/x.sock: paddock dev listens on a port alone; give HOST:PORT",
		"dev --ephemeral --listen=localhost:abc":                                   `--listen localhost:abc: "abc" is no port`,
		serve + " --cors-origin=":                                                  "--cors-origin is empty; give a value",
		serve + " --auth-file=":                                                    "--auth-file is empty",
		serve + " --listen=127.0.0.1":                                              "HOST:PORT",
		serve + " --request-timeout=-1s":                                           "--request-timeout",
		serve + " --batch-workers=100000":                                          "batch workers",
		"serve --migrate --cell=main=postgres://nobody@127.0.0.1:1/nothing":        "cells have to be registered together; run paddock migrate up",
		serve + " --schema=Team":                                                   `--schema: "Team" cannot name the schema; use at most 40`,
		serve + " --event-retention=1s":                                            "--event-retention is 1s; give 1m or more",
		serve + " --event-retention=0s":                                            "--event-retention is 0s; give 1m or more",
		serve + " --idle-lock-retention=0s":                                        "--idle-lock-retention is 0s; give 1m or more",
		serve + " --default-ttl=0s":                                                "--default-ttl is 0s; give more, or leave it out for the default: 30s, or the nearest that is allowed",
		"healthcheck --timeout=0s":                                                 "--timeout is 0s, in which nothing answers; give more",
		"freeze x --reason=y --for=0s":                                             "--for is 0s; give more, or leave it out for the default: until paddock thaw",
		"freeze x --reason=y --drain --timeout=0s":                                 "--timeout is 0s; give more, or leave it out for the default: as long as the freeze lasts",
		"acquire x --max-hold=0s":                                                  "--max-hold is 0s; give more, or leave it out for the default: no limit",
		"rule set x --max-ttl=0s --max-hold=1h":                                    "--max-ttl is 0s; give more",
		"watch --for=0s":                                                           "--for is 0s; give more",
		"verify --for=0s":                                                          "--for is 0s; give more",
		"renew x --ttl=0s":                                                         "--ttl is 0s; give more, or leave it out for the default: unchanged",
		serve + " --event-retention=1.5d":                                          "whole numbers",
		serve + " --max-ttl=200000d":                                               `--max-ttl: "200000d" is too long`,
		serve + " --drain-delay=-1s":                                               "--drain-delay is -1s",
		serve + " --metrics-listen=9090":                                           "--metrics-listen 9090: give HOST:PORT",
		serve + " --metrics-listen=no.invalid:1":                                   "--metrics-listen no.invalid:1",
		serve + " --tls-cert=run.go --tls-key=run.go":                              "run.go",
		down + " --steps=0":                                                        "1 or more",
		"migrate up --schema=pg_paddock --database-url=postgres://a@127.0.0.1:1/c": "PostgreSQL reserves it",
		"dev --ephemeral --listen=0.0.0.0:0":                                       "loopback",
		"dev --ephemeral --dir=/tmp/x":                                             "can't be used together",
		"dev --ephemeral --schema=a\"b":                                            "cannot name the schema",
		down + " --schema= --to=0":                                                 "--schema: is empty; give a name",
		"migrate down --yes --to":                                                  "--to: the value is missing",
		"migrate up --schema":                                                      "--schema: the value is missing",
		"demo --url=here":                                                          "--url: ",
		"demo --ttl=0s":                                                            "--ttl is 0s",

		"acquire":                                          "NAME is missing. The lock's name, such as jobs:nightly. For example: paddock acquire jobs:nightly --ttl 1m",
		"acquire a/b":                                      "NAME: name has an invalid character",
		"acquire a b/b":                                    `NAME "b/b": name has an invalid character`,
		"acquire a b a":                                    `NAME "a": name is given twice`,
		"acquire" + strings.Repeat(" x", 33):               "has 33 items; give 1 to 32",
		"acquire a b,capacity=100000":                      `NAME "b": capacity is 100000`,
		"acquire a,both":                                   "the mode after the comma is invalid",
		"acquire x --metadata={":                           "--metadata: ",
		"acquire x --metadata=7":                           "--metadata: ",
		"acquire x --metadata=" + longMetadata:             "4096",
		"acquire x --ttl=0s":                               "--ttl is 0s",
		"lead x --ttl=0s -- true":                          "--ttl is 0s",
		"lead x --value=" + longMetadata + " -- /bin/true": "--value: value has ",
		"session --ttl=0s -- true":                         "--ttl is 0s",
		"acquire x --ttl=-1d":                              "--ttl is -24h0m0s; give 0s or more",
		"acquire x --ttl=2d":                               "--ttl is 2d; give 100ms to 1d.",
		"acquire x --ttl=7x":                               `--ttl: "7x" is not a duration`,
		"acquire x --grace=-1s":                            "--grace is -1s",
		"acquire x --max-hold=-1s":                         "--max-hold is -1s",
		"acquire x --wait=-1s":                             "or forever",
		"acquire x --wait=1.5d":                            `--wait: `,
		"acquire x --wait=long":                            `"long"`,
		"acquire x --capacity=0":                           "--capacity is 0; give 1 or more",
		"acquire x --capacity=2 --shared":                  "can't be used together",
		"acquire x --permits=2 --shared":                   "can't be used together",
		"acquire x --capacity=2 --permits=0":               "--permits is 0; give 1 or more",
		"acquire x --capacity=2 --permits=3":               "--permits: permits is 3; give 1 to 2",
		"acquire x --holder=a\x1bb":                        "--holder: ",
		"run --tz=UTC x -- true":                           "--tz and --at-least belong to --once-per",
		"run --at-least=1s x -- true":                      "--tz and --at-least belong to --once-per",
		"run --once-per=0s x -- true":                      `--once-per is "0s"; give minute, hour, day, week or month, or a duration`,
		"run --once-per=daily x -- true":                   `--once-per is "daily"; give minute, hour,`,
		"run --once-per=24h --tz=UTC x -- true":            "a duration has no time zone",
		"run --once-per=day --tz=Berlin x -- true":         "--tz: time_zone is unknown",
		"run --once-per=32d x -- true":                     "--once-per, --at-least is 32d; give ",
		"run --once-per=day --shared x -- true":            "--once-per is for one lock in the mode exclusive",
		"run --once-per=day --lock=x --lock=y -- true":     "--once-per is for one lock in the mode exclusive",
		"freeze x":                                               "--reason",
		"freeze x/y --reason=r":                                  "SCOPE: scope has an invalid character",
		"freeze x --reason=r --for=32d":                          "--for is 32d; give 0s to 31d.",
		"freeze x --reason=r --timeout=1s":                       "--timeout belongs to --drain",
		"rule set x":                                             "the rule has no bound; give one or more of --max-ttl",
		"rule set x --capacity=-1":                               "--capacity: capacity is -1",
		"rule set x --max-ttl=1ms":                               "--max-ttl is 1ms; give 100ms to 1d.",
		"acquire x --retry=-1s":                                  "--retry is -1s",
		"acquire x --lease-id=" + strings.Repeat("0", 32):        "--lease-id: ",
		"acquire x --session=x":                                  "is not a random UUID",
		"acquire x --ttl=1m --session" + id[len(" --lease-id"):]: "are those of the session",
		"renew x":                "PADDOCK_LEASE_ID",
		"renew x --ttl=-1s" + id: "--ttl is -1s",
		"renew a/b" + id:         "NAME: ",
		"renew a b a" + id:       `NAME "a": name is given twice`,
		"release x":              "PADDOCK_LEASE_ID",
		"release -x" + id:        "-x",
		"release a b/b" + id:     `NAME "b/b": name has an invalid character`,

		"get":                                              "either the name of a lock",
		"get a/b":                                          "NAME: ",
		"get x -o xml":                                     `--output: "xml" is not one of its values; give table, wide, json, yaml, name or env`,
		"get x --session=0000000000000001":                 "either the name of a lock",
		"get --session=x":                                  "16 hexadecimal digits",
		"queue x -o env":                                   "json, yaml or name",
		"list -o env":                                      "json, yaml or name",
		"list --state=taken":                               "--state: ",
		"list --limit=-1":                                  "--limit is -1",
		"list --sort=name":                                 "--sort: ",
		"list --sessions --prefix=a":                       "only with --holder and --limit",
		"list --tree=repo --limit=1":                       "--tree cannot be combined",
		"list --tree=repo:":                                "root ends with a colon",
		"list --url=here":                                  "--url: ",
		"list --ca=run.go":                                 "contains no PEM certificate",
		"list --ca=/nowhere":                               "--ca: ",
		"tree declare repo:":                               "ROOT: root ends with a colon; leave it out",
		"watch x --prefix=y":                               "--prefix: ",
		"watch --from=yesterday":                           "now, oldest",
		"watch --from=-1":                                  "now, oldest",
		"watch --for=-1s":                                  "--for is -1s",
		"watch --from=oldest --count=-1":                   "--count is -1",
		"history a --since=yesterday":                      `--since: "yesterday" is no time; give an instant such as`,
		"history a --at=25:00":                             `--at: "25:00" is no time`,
		"history a --at=-2h":                               `--at: "-2h" is no time`,
		"history a --at=1h --since=2h":                     "--at cannot be combined",
		"history a --since=1h --until=2h":                  "is not after since",
		"history a --kind=lost":                            `"lost" is no kind of event; give granted, released`,
		"history a --limit=0":                              "--limit is 0; give 1 to 1000",
		"events jobs:nightly":                              "unexpected argument jobs:nightly",
		"events --since=1h --until=2h":                     "is not after since",
		"events --since=yesterday":                         `--since: "yesterday" is no time; give an instant such as`,
		"events --kind=expired,lost":                       `"lost" is no kind of event; give granted, released`,
		"events --limit=1001":                              "--limit is 1001; give 1 to 1000",
		"events --prefix=a/b":                              "--prefix: ",
		"events --follow --until=1h":                       "leave out --until and --around",
		"events --follow --around=1h":                      "leave out --until and --around",
		"events --around=1h --since=2h":                    "--around cannot be combined with --since or --until",
		"history a --around=noon":                          `--around: "noon" is no time; give an instant such as`,
		"token verify a":                                   "TOKEN is missing. ",
		"token verify a 0":                                 "TOKEN is 0; give a fencing token",
		"token verify a/b 1":                               "NAME: name has an invalid character",
		"token verify a 1 --slot=-1":                       "--slot: ",
		"completion tcsh":                                  "give bash, zsh or fish",
		"man":                                              "DIR is missing",
		"revoke x --reason=y":                              "--token",
		"revoke x --token=0 --reason=y":                    "--token: ",
		"revoke x --token=1":                               "--reason",
		"revoke x --token=1 --reason=":                     "--reason is empty",
		"revoke x --token=1 --reason=y --slot=-1":          "--slot: ",
		"revoke x --token=1 --reason=y --acquired-at=noon": "--acquired-at",

		"run --lease-id-file= x -- sh":           "--lease-id-file is empty; give a value, or leave the flag out",
		"run x":                                  "the command is missing; give it",
		"run -- make -j 4":                       "NAME is missing: what stands after -- is the command. Give the lock's name before it, as in paddock run jobs:nightly -- make -j 4",
		"run --ttl 1m -- make":                   "NAME is missing",
		"lead -- ./serve":                        "as in paddock lead jobs:nightly -- ./serve",
		"run x --":                               "the command is missing",
		"run --wait=1s":                          "the lock is missing",
		"run a/b -- sh":                          "NAME: name has an invalid character",
		"run --no-such-thing x -- sh":            "unknown flag --no-such-thing",
		"run --kill-after=10s x -- sh":           "give 0s to 9s",
		"run --kill-after=5s --ttl=1s x -- sh":   "give 0s to 233",
		"run --kill-after=1d x -- sh":            "--kill-after is 24h0m0s",
		"run --kill-after=-1s x -- sh":           "--kill-after is -1s",
		"run --lock=a x -- sh":                   "unexpected x: with --lock, give no NAME",
		"run --lock=a sh job.sh":                 "unexpected sh: with --lock",
		"run --lock=a y sh -- -c":                "unexpected y: with --lock",
		"run --lock=a --":                        "the command is missing",
		"run --lock=a --lock=b":                  "as in paddock run --lock a --lock b -- make",
		"run --lock=a --lock=a -- sh":            `NAME "a": name is given twice`,
		"session --ttl=1ms -- sh":                "--ttl",
		"session --ttl=3s --kill-after=3s -- sh": "--kill-after",
		"session --":                             "the command is missing",

		"verify --clients=0":     "--clients is 0",
		"verify --locks=-1":      "--locks is -1",
		"verify --operations=-1": "--operations is -1",
		"verify --ttl=1ms":       "--ttl is 1ms",
		"verify --for=-1s":       "--for is -1s",
		"verify --prefix=a/b":    `--prefix is "a/b"`,
		"verify --url=nowhere":   "--url: ",
		"verify --url=":          "--url is empty",

		"key list": "PADDOCK_AUTH_FILE",
		"key new --auth-file=/nowhere/keys.json x":             "--role",
		"key new --auth-file=/nowhere/keys.json --role=root x": "give read, lock or admin",
		key:                          "NAME is missing. Name of the client",
		key + " --prefix=billing: x": "omit the last colon",
		key + " --prefix= x":         "--prefix is empty",
		key + " --expires=0s x":      "--expires is 0s; give more, or leave it out for the default: no limit",
		key + " --expires=-1h x":     "--expires is -1h",
		key + " --expires=1ms x":     "--expires is 1ms",
	} {
		code, stdout, stderr := call(t, map[string]string{"PADDOCK_URL": "http://127.0.0.1:1"}, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("paddock %s: exit code %d, want %d and %q in:\n%s%s", args, code, exitUsage, want, stdout, stderr)
		}
	}
}

// parsersWords matches what the parser of flags says in terms of itself.
var parsersWords = regexp.MustCompile(`expected|but got|must be one of|EOL|<[a-z]+|strconv|slog|parsing time|\\bint\\b|\\(string\\)|missing flags`)

// TestNoUsageErrorSpeaksAsTheParser gives a wrong value, or none, to every flag of every command, and calls each without
// its arguments.
func TestNoUsageErrorSpeaksAsTheParser(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	mustBeNil(t, err)
	try := func(name string, args ...string) {
		code, stdout, stderr := call(t, nil, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, name) || parsersWords.MatchString(stderr) || !strings.Contains(stderr, "--help") {
			t.Errorf("paddock %q: exit code %d, want %d, %s and no words of the parser:\n%s%s", args, code, exitUsage, name, stdout, stderr)
		}
	}
	tried := 0
	seen := make(map[string]bool) // a flag that several commands share is tried with one of them
	for _, command := range parser.Model.Leaves(true) {
		path := strings.Fields(command.FullPath())[1:]
		for _, flag := range slices.Concat(parser.Model.Flags, command.Flags) {
			id := flag.Name + flag.Help + flag.Target.Type().String()
			if seen[id] {
				continue
			}
			seen[id] = true
			if flag.Name == "help" || flag.Name == "version" {
				continue
			}
			name := "--" + flag.Name
			if !flag.IsBool() {
				try(name, append(slices.Clone(path), name)...)
				try(name, append(slices.Clone(path), name, "--log-level=info")...)
			}
			kind := flag.Target.Kind()
			if kind == reflect.Pointer {
				kind = flag.Target.Type().Elem().Kind()
			}
			if kind != reflect.String && kind != reflect.Slice || flag.Enum != "" || flag.IsBool() {
				try(name, append(slices.Clone(path), name+"=nonsense")...)
				tried++
			}
		}
		for _, argument := range command.Positional {
			if argument.Required {
				if required := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Required }); !required {
					try("", path...)
				}
				tried++
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestUsageErrorsHaveAnExample in the words of the help.
func TestUsageErrorsHaveAnExample(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"list --limit=many":        `--limit: "many" is not a whole number. Maximum number of locks; 0 for all. For example: --limit 10 (see paddock list --help)`,
		"list --limit":             `--limit: the value is missing. Maximum number of locks; 0 for all. For example: --limit 10 (see paddock list --help)`,
		"revoke x --token=1":       `--reason is missing. Why. For example: --reason 'db-3 is being replaced' (see paddock revoke --help)`,
		"revoke x --token=x":       `--token: "x" is not a whole number. Current fencing token of the lock, as get shows it, so that no later lease is revoked by mistake. For example: --token 10496`,
		"release":                  "NAME is missing. The lock's name. For example: paddock release NAME (see paddock release --help)",
		"queue":                    "NAME is missing. The lock's name, such as jobs:nightly. For example: paddock queue jobs:nightly (see",
		"fence report jobs x":      `TOKEN: "x" is not a whole number. The token that was rejected. For example: paddock fence report jobs:nightly 41`,
		"list --contended=perhaps": `--contended: "perhaps" is neither true nor false; give the flag alone. Only locks with waiters. For example: --contended (see`,
		"--log-level=loud version": `--log-level: "loud" is not a level. Minimum level to log: debug, info, warn or error. For example: --log-level info (see`,
		"revoke x --acquired-at=noon --token=1 --reason=x": `--acquired-at: "noon" is not an instant. Revoke only the lease that was acquired at this instant: acquired_at of get -o json. For example: --acquired-at 2026-01-02T03:12:00Z`,
		"migrate down --yes":                     "--steps or --to is missing. How many migrations to undo. For example: --steps 1 (see",
		"epoch":                                  "the command is missing; give list, new, open or quorum, as in paddock epoch list (see",
		"acquire x --shared --capacity=2":        "--shared and --capacity can't be used together; leave one of them out (see",
		"epoch quorum maybe":                     `REQUIRED: "maybe" is not one of its values; give on or off (see`,
		"acquire x --conflict-exit-code=256":     "--conflict-exit-code is 256; give 0 to 255",
		"run --conflict-exit-code=-1 x -- true":  "--conflict-exit-code is -1; give 0 to 255",
		"get --watch --session=7bb9f2a32ab6969f": "--watch is for a lock",
		"get x --watch -o env":                   "--watch is for a lock",
		"list --watch --tree=x":                  "--watch is for locks",
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("paddock %s: exit code %d, want %d and\n%s\nin\n%s%s", args, code, exitUsage, want, stdout, stderr)
		}
	}
}

// longMetadata is too long.
var longMetadata = `{"a":"` + strings.Repeat("x", lock.MaxMetadataSize) + `"}`

func TestSecretOnTheCommandLineIsNotPrinted(t *testing.T) {
	t.Parallel()
	const id = "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	for _, args := range []string{
		"renew x " + id, "renew x --lease-id=" + id + "0", "release x --lease=" + id, "release x -" + id,
		"acquire x --url http://me:s3cret@127.0.0.1:1", "list http://me:s3cret@127.0.0.1:1",
		"release x --retry=0s --url=http://127.0.0.1:1 --lease-id " + id,
	} {
		code, stdout, stderr := call(t, map[string]string{"PADDOCK_LEASE_ID": "not-" + id}, strings.Fields(args)...)
		if code == exitOK || strings.Contains(stdout+stderr, id[:23]) || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestWrongBaseURLIsExplained uses a URL that is not the root of a service.
func TestWrongBaseURLIsExplained(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectFailure(exitUsage, []string{"no_route"}, "get", "x", "--url="+d.base+"/docs")
}

// TestAnEmptyVariableNamesNoSchema: a template whose variable is not set must not serve the locks of another deployment.
func TestAnEmptyVariableNamesNoSchema(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PADDOCK_SCHEMA": ""}
	for _, args := range []string{"serve", "migrate up", "epoch list", "dev --ephemeral"} {
		if code, stdout, stderr := call(t, env, strings.Fields(args)...); code != exitUsage || !strings.Contains(stderr, "PADDOCK_SCHEMA (--schema): is empty") {
			t.Errorf("%s: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	env["PADDOCK_DATABASE_URL"] = "postgres://nobody@127.0.0.1:1/nothing"
	if code, stdout, stderr := call(t, env, "migrate", "up", "--schema=a", "--wait-database=1ms"); code != exitUnreachable {
		t.Errorf("beside the flag: exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func TestEnvironmentVariablesSetFlags(t *testing.T) {
	t.Parallel()
	parsed := func(env map[string]string, args ...string) serveCommand {
		var line commandLine
		if _, err := parse(&line, append([]string{"serve"}, args...), &sources{env: variablesOf(env)}, t.Output()); err != nil {
			t.Fatal(err)
		}
		return line.Serve
	}
	env := map[string]string{"DATABASE_URL": "usual", "PADDOCK_LISTEN": "127.0.0.1:1", "PADDOCK_MIN_TTL": "",
		"PADDOCK_NO_AUTH": "true", "PADDOCK_EVENT_RETENTION": "1d12h"}
	got := parsed(env, "--listen=127.0.0.1:2")
	if got.URL != "usual" || got.Listen != "127.0.0.1:2" || got.EventRetention != 36*time.Hour {
		t.Errorf("URL %q, listen %q, retention %v: want the variable, the flag, and a day and a half", got.URL, got.Listen, got.EventRetention)
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
