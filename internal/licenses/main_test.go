package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThirdPartyLicensesAreUpToDate(t *testing.T) {
	t.Parallel()
	want, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	if read(t, target) != want {
		t.Errorf("%s is out of date: run go generate . in the root of the module", target)
	}
	for _, part := range []string{
		"github.com/jackc/pgx/v5 ", "golang.org/x/sys ", "Swagger UI", "Go standard library",
		"Copyright 2009 The Go Authors", "Copyright (c) 2013-2021 Jack Christensen", "Copyright 2020-2021 SmartBear Software Inc.",
	} {
		if !strings.Contains(want, "\n"+part) {
			t.Errorf("%s has no line that starts with %q", target, part)
		}
	}
}

// The license text of Swagger UI is copied by hand, so it must belong to the script that the module embeds.
func TestSwaggerUILicenseBelongsToTheEmbeddedVersion(t *testing.T) {
	t.Parallel()
	const of5291 = "a600ebf8f885c92373e2210b1fd7422b24a4ff9cad93d3d7d6481f40b7704564"
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/swaggest/swgui").Output()
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "v5/static/swagger-ui-bundle.js.gz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = script.Close() })
	unzipped, err := gzip.NewReader(script)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, unzipped); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != of5291 {
		t.Errorf("swgui embeds another version of Swagger UI (SHA-256 %s): update swagger-ui.txt and its title", got)
	}
}

func TestImageContainsTheLicenses(t *testing.T) {
	t.Parallel()
	if line := "COPY LICENSE " + target + " /licenses/"; !strings.Contains(read(t, "Dockerfile"), "\n"+line+"\n") {
		t.Errorf("Dockerfile has no line %q", line)
	}
	ignore := read(t, ".dockerignore")
	for _, path := range []string{"LICENSE", target, "*.go", "internal"} {
		if !strings.Contains(ignore, "\n!"+path+"\n") {
			t.Errorf(".dockerignore excludes %s", path)
		}
	}
}
