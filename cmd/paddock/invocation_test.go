package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestDevPrintsWhatStartsItAgain(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	mustBeNil(t, os.WriteFile(filepath.Join(bin, "paddock"), []byte("#!/bin/sh\n"), 0o700))
	const cached = "/root/.cache/go-build/4d/4df1d58d3b8d5b52ca9b4a8a8b5bd4e2b4a8a8b5bd4e2b4a8a8b5bd4e2b4a8a8-d/paddock"
	for _, c := range []struct {
		from       origin
		path, want string
	}{
		{origin{typed: "paddock", executable: bin + "/paddock"}, "/bin:" + bin, "paddock"},
		{origin{typed: "paddock", executable: "/opt/paddock"}, "/nowhere", "/opt/paddock"},
		{origin{typed: "./bin/paddock", executable: "/src/bin/paddock"}, bin, "/src/bin/paddock"},
		{origin{typed: "./bin/paddock", executable: "/a b/paddock"}, bin, "'/a b/paddock'"},
		{origin{typed: "./bin/paddock"}, bin, "./bin/paddock"},
		{origin{typed: cached, executable: cached, clone: true}, bin, "go run ./cmd/paddock"},
		{origin{typed: "x", executable: "/tmp/go-build2894/b001/exe/paddock", clone: true}, bin, "go run ./cmd/paddock"},
		{origin{typed: "x", executable: `C:\go-build2894\b001\exe\paddock.exe`, clone: true}, bin, "go run ./cmd/paddock"},
		{origin{typed: cached, executable: cached, module: "v1.2.3"}, bin, "go run github.com/paddock-lock/paddock/cmd/paddock@v1.2.3"},
		{origin{typed: cached, executable: cached}, bin, "go run github.com/paddock-lock/paddock/cmd/paddock"},
		{origin{pid: 1, typed: "/paddock", executable: "/paddock", hostname: "4df1d58d3b8d"}, "/bin", "docker exec 4df1d58d3b8d /paddock"},
		{origin{pid: 1, typed: "/paddock", executable: "/paddock", hostname: "laptop"}, "/bin", "/paddock"},
		{origin{pid: 7, typed: "/usr/bin/paddock", executable: "/usr/bin/paddock", hostname: "4df1d58d3b8d"}, "/bin", "/usr/bin/paddock"},
	} {
		if got := c.from.command(c.path); got != c.want {
			t.Errorf("%+v: %s, want %s", c.from, got, c.want)
		}
	}
}

// TestDevWithoutCurlPrintsOtherLines, as in the image, and runs them.
func TestDevWithoutCurlPrintsOtherLines(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	address, err := net.ResolveTCPAddr("tcp", strings.TrimPrefix(d.base, "http://"))
	mustBeNil(t, err)
	var printed bytes.Buffer
	p := &program{env: variablesOf(map[string]string{"PATH": "/nowhere"}), stdout: &printed}
	image := origin{pid: 1, hostname: "4df1d58d3b8d", executable: "/paddock", typed: "/paddock"}
	mustBeNil(t, (&devCommand{}).welcome(p, address, givenDatabase{}, image))
	lines := regexp.MustCompile(`(?m)^  docker exec 4df1d58d3b8d /paddock (.*)$`).FindAllStringSubmatch(printed.String(), -1)
	if len(lines) != 3 || strings.Contains(printed.String(), "curl") {
		t.Fatalf("%d lines of three in:\n%s", len(lines), &printed)
	}
	for _, line := range lines {
		d.expectExit(exitOK, strings.Fields(line[1])...)
	}
}
