package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	target = "THIRD_PARTY_LICENSES"
	binary = "github.com/paddock-lock/paddock/cmd/paddock"
)

// notModules are the license texts of software that is not a Go module.
var (
	//go:embed go.txt
	goLicense string
	//go:embed swagger-ui.txt
	swaggerUILicense string
)

// systems are the operating systems whose binaries the texts cover.
var systems = []string{"linux", "darwin", "windows", "freebsd"}

// licenseFile matches the names of the files that a license requires to be passed on.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

func main() {
	log.SetFlags(0)
	text, err := collect()
	if err == nil {
		err = os.WriteFile(target, []byte(text), 0o644)
	}
	if err != nil {
		log.Fatalf("licenses: %v", err)
	}
}

// A module is a Go module that the binary links.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// collect returns the content of THIRD_PARTY_LICENSES.
func collect() (string, error) {
	modules := map[string]module{}
	for _, system := range systems {
		if err := addLinked(modules, system); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString("Paddock contains the following third-party software. Paddock itself is licensed under the Apache License 2.0.\n")
	section(&b, "Go standard library and runtime", "", goLicense)
	section(&b, "Swagger UI 5.29.1 (in github.com/swaggest/swgui)", "", swaggerUILicense)
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if err := addModule(&b, modules[path]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// addLinked adds the modules that the binary links on one operating system.
func addLinked(modules map[string]module, system string) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", binary)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64", "GOOS="+system, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s: %w", system, err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ Module *module }
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case p.Module != nil && !p.Module.Main:
			m := *cmp.Or(p.Module.Replace, p.Module)
			modules[p.Module.Path] = m
		}
	}
}

// addModule writes the license files of a module. A module without one is an error.
func addModule(b *strings.Builder, m module) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w; run go mod download", m.Path, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		section(b, m.Path+" "+m.Version, e.Name(), string(text))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no license file; add its license text to internal/licenses", m.Path)
	}
	return nil
}

// section writes one text below a heading.
func section(b *strings.Builder, title, file, text string) {
	if file != "" {
		title += ": " + file
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	bar := strings.Repeat("=", 80)
	fmt.Fprintf(b, "\n%s\n%s\n%s\n\n%s\n", bar, title, bar, text)
}
