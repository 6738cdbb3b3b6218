package main

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyLoopbackIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{ // what to bind; "" for a refusal
		"127.0.0.1:8080":          "127.0.0.1:8080",
		"127.8.9.10:0":            "127.8.9.10:0",
		"[::1]:8080":              "[::1]:8080",
		"[::ffff:127.0.0.1]:8080": "127.0.0.1:8080",
		"localhost:8080":          "127.0.0.1:8080",
		":8080":                   "",
		"0.0.0.0:8080":            "",
		"[::]:8080":               "",
		"192.0.2.1:8080":          "",
		"[::ffff:192.0.2.1]:8080": "",
		"[fe80::1%lo]:8080":       "",
	} {
		got, err := checkAddress(t.Context(), "--listen", address, false)
		if refused := errors.Is(err, errBeyondLoopback); refused != (want == "") || got != want {
			t.Errorf("%s: bind %q (%v), want %q", address, got, err, want)
		}
		if _, err := checkAddress(t.Context(), "--listen", address, true); err != nil {
			t.Errorf("%s with --no-auth: %v", address, err)
		}
	}
}

func TestServeBeyondLoopbackNeedsKeysAndTLSOrAFlag(t *testing.T) {
	t.Parallel()
	const nothing = "--database-url=postgres://nobody@127.0.0.1:1/nothing"
	for name, c := range map[string]struct{ args, want []string }{
		"no keys": {nil, []string{
			"refusing to listen on 0.0.0.0:0", "Without API keys", "paddock key new", "--auth-file", "--listen " +
				"127.0.0.1:8080", "--no-auth"}},
		"no keys, with TLS": {[]string{"--tls-cert=c.pem", "--tls-key=k.pem"},
			[]string{"refusing", "Without API keys"}},
		"no keys, behind a proxy": {[]string{"--plain-http"}, []string{"refusing", "Without API keys"}},
		"keys without TLS": {[]string{"--auth-file=keys.json"},
			[]string{"refusing", "Without TLS", "--tls-cert", "--plain-http"}},
		"keys and --no-auth":            {[]string{"--auth-file=keys.json", "--no-auth"}, []string{"give one of them"}},
		"a certificate without its key": {[]string{"--auth-file=keys.json", "--tls-cert=c.pem"}, []string{"--tls-key"}},
		"only a client CA":              {[]string{"--no-auth", "--tls-client-ca=ca.pem"}, []string{"needs --tls-cert"}},
		"TLS and a proxy": {[]string{"--auth-file=keys.json", "--tls-cert=c.pem", "--tls-key=k.pem",
			"--plain-http"}, []string{"give one of them"}},
		"no such keys": {[]string{"--auth-file=/nowhere/keys.json", "--plain-http"},
			[]string{"/nowhere/keys.json", "paddock key new"}},
		"no such certificate": {[]string{"--no-auth", "--tls-cert=/nowhere/c.pem", "--tls-key=/nowhere/k.pem"},
			[]string{"/nowhere/c.pem"}},
		"a negative rate": {[]string{"--no-auth", "--rate-per-key=-1"}, []string{"--rate-per-key"}},
		"no connections":  {[]string{"--no-auth", "--max-connections=0"}, []string{"--max-connections is 0"}},
	} {
		code, _, stderr := call(t, nil, append([]string{"serve", "--listen=0.0.0.0:0", nothing}, c.args...)...)
		if code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", name, code, exitUsage)
		}
		for _, part := range c.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: no %q in: %s", name, part, stderr)
			}
		}
	}
	for name, f := range map[string]accessFlags{
		"without keys, with --no-auth": {NoAuth: true},
		"behind a proxy":               {AuthFile: "keys.json", PlainHTTP: true},
		"over TLS":                     {AuthFile: "keys.json", tlsFlags: tlsFlags{TLSCert: "c.pem", TLSKey: "k.pem"}},
	} {
		if !f.mayListenBeyondLoopback() {
			t.Errorf("%s: may not listen beyond loopback", name)
		}
	}
}

func TestLocalURLReachesTheListener(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8080":    "http://127.0.0.1:8080",
		":8080":             "http://127.0.0.1:8080",
		"0.0.0.0:8080":      "http://127.0.0.1:8080",
		"[::]:8080":         "http://127.0.0.1:8080",
		"[::1]:8080":        "http://[::1]:8080",
		"locks.example:443": "http://locks.example:443",
	} {
		if got, err := localURL(address); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
}
