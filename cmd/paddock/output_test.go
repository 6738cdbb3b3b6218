package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"
)

// hostile is text that tries to control the terminal, or to look like other text.
const hostile = "root\x1b[2J\x1b]0;pwned\x07\r\n\t\x00\x7f\u009b31m\u202egnp.exe\u200b \xff é 漢字 😀"

func TestTableIsEscapedAndAligned(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	var s table
	s.head("LOCK", "HOLDER", "TOKEN")
	s.row("a", "two\tcells", "1")
	s.row("jobs:nightly", "two\nrows", "23")
	if err := s.write(&b, style{}); err != nil {
		t.Fatal(err)
	}
	want := "LOCK          HOLDER      TOKEN\n" +
		"a             two\\tcells  1\n" +
		"jobs:nightly  two\\nrows   23\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestJSONIsEscapedAndKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	text := strings.ToValidUTF8(hostile, "") + "\U000e0041"
	var b bytes.Buffer
	if err := writeJSON(&b, map[string]string{"holder": text}, "  "); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.ReplaceAll(b.String(), "\n", "") {
		if !unicode.IsPrint(r) {
			t.Errorf("there is %q in %s", r, b.String())
		}
	}
	var back map[string]string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["holder"] != text {
		t.Errorf("%q became %q, %v", text, back["holder"], err)
	}
}

// TestShellReadsTheExportedVariables uses a real shell.
func TestShellReadsTheExportedVariables(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"plain", "jobs:nightly", "two words", "it's", `"$(touch /tmp/never)"`, "`id`", `back\slash`,
		"a\nb", "~", "*", "'", "''", "a=b;c", "é", "#", "-n",
	} {
		line := exports([]variable{{"WORD", text}, {"GONE", ""}})
		shell := exec.CommandContext(t.Context(), "sh", "-c", `eval "$1"; [ -z "${GONE+set}" ] && exec printenv WORD`, "sh",
			line)
		shell.Env = []string{"GONE=before", "PATH=/usr/bin:/bin"}
		if got, err := shell.Output(); err != nil || string(got) != text+"\n" {
			t.Errorf("%q was read as %q, %v: %s", text, got, err, line)
		}
	}
}

func TestShortDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 99 * time.Millisecond: "0s", 150 * time.Millisecond: "100ms",
		1999 * time.Millisecond: "1.9s", 10999 * time.Millisecond: "10s",
		time.Minute: "1m", 70 * time.Second: "1m10s", time.Hour: "1h",
		time.Hour + 59*time.Second: "1h0m59s", 100 * time.Minute: "1h40m",
		24 * time.Hour: "24h", 10*time.Minute + 400*time.Millisecond: "10m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
