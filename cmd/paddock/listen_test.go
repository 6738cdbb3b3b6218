package main

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyLoopbackIsOpenByItself(t *testing.T) {
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
		got, err := checkAddress(t.Context(), address, false)
		if refused := errors.Is(err, errBeyondLoopback); refused != (want == "") || got != want {
			t.Errorf("%s: bind %q (%v), want %q", address, got, err, want)
		}
		if _, err := checkAddress(t.Context(), address, true); err != nil {
			t.Errorf("%s with --no-auth: %v", address, err)
		}
	}
}

func TestServeBeyondLoopbackNeedsWords(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, nil, "serve", "--listen=0.0.0.0:0", "--database-url=postgres://nobody@127.0.0.1:1/nothing")
	if code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	for _, part := range []string{"refusing", "no API keys", "--listen 127.0.0.1:8080", "--no-auth"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("no %q in: %s", part, stderr)
		}
	}
}

func TestAListenerIsReachedByThisMachine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8080":    "http://127.0.0.1:8080",
		":8080":             "http://127.0.0.1:8080",
		"0.0.0.0:8080":      "http://127.0.0.1:8080",
		"[::]:8080":         "http://127.0.0.1:8080",
		"[::1]:8080":        "http://[::1]:8080",
		"locks.example:443": "http://locks.example:443",
	} {
		if got, err := urlOf(address); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
}
