package arch_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImageIsCompiledOnTheBuilder reads the Dockerfile: the compiler must not run under emulation, neither with
// BuildKit nor with the builder before it, which sets none of the variables.
func TestImageIsCompiledOnTheBuilder(t *testing.T) {
	t.Parallel()
	stages := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(readRoot(t, "Dockerfile"), -1)
	if len(stages) != 2 || !strings.HasPrefix(stages[0], "FROM --platform=${BUILDPLATFORM:-linux} golang:") ||
		strings.Contains(stages[1], "--platform") {
		t.Errorf("the stages are %q; want a compiler of the builder's platform, and an image of the target's", stages)
	}
	build, image, _ := strings.Cut(readRoot(t, "Dockerfile"), "\n"+stages[len(stages)-1]+"\n")
	for _, want := range []string{"ARG TARGETOS\n", "ARG TARGETARCH\n", " GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build ",
		"-X main.release=${VERSION} -X main.commit=${COMMIT}"} {
		if !strings.Contains(build, want) {
			t.Errorf("the stage that compiles has no %q", want)
		}
	}
	if strings.Contains(image, "\nRUN ") {
		t.Error("the stage of the image runs a command, which another architecture would emulate")
	}
}

func TestImageHasTheLabelsOfOCI(t *testing.T) {
	t.Parallel()
	_, image, _ := strings.Cut(readRoot(t, "Dockerfile"), "\nFROM gcr.io/")
	for label, want := range map[string]string{
		"title": "Paddock", "description": "A distributed lock service", "source": "https://github.com/paddock-lock/paddock",
		"licenses": "Apache-2.0", "version": "${VERSION:-devel}", "revision": "${COMMIT:-unknown}",
	} {
		if !strings.Contains(image, "org.opencontainers.image."+label+`="`+want) {
			t.Errorf("Dockerfile has no label %s that begins with %q", label, want)
		}
	}
	for _, arg := range []string{"VERSION", "COMMIT"} {
		if !strings.Contains(image, "\nARG "+arg+"\n") {
			t.Errorf("the stage of the image does not declare %s, so its label would be empty", arg)
		}
	}
	if !strings.Contains(readRoot(t, "Makefile"), "--label org.opencontainers.image.created=") {
		t.Error("make docker does not set the label created")
	}
}

// TestImageIsBuiltFromEveryPackage compares .dockerignore, which excludes all that it does not name, with what the binary
// is built from.
func TestImageIsBuiltFromEveryPackage(t *testing.T) {
	t.Parallel()
	ignore := readRoot(t, ".dockerignore")
	for _, dep := range append(list(t, root, "./cmd/paddock")[0].Deps, module+"/cmd/paddock") {
		if !isIn(dep, module) {
			continue
		}
		folder, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(dep, module), "/"), "/")
		if line := "!" + cmp.Or(folder, "*.go"); !strings.Contains(ignore, "\n"+line+"\n") {
			t.Errorf(".dockerignore excludes %s, which the binary is built from; add a line %s", dep, line)
		}
	}
}

// TestEveryPackageHasTheVersionOfTheAPI compares the SDKs' versions, and the newest of the changelog, with that of
// openapi.yaml, from which make set-version sets the others. Binaries and images get theirs from the tag, which must be
// the same: .ci/release checks that.
func TestEveryPackageHasTheVersionOfTheAPI(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^  version: (\S+)$`).FindStringSubmatch(readRoot(t, "openapi.yaml"))
	if version == nil {
		t.Fatal("openapi.yaml has no version")
	}
	for file, places := range map[string][]string{
		"sdk/python/paddock/_transport.py": {`(?m)^VERSION = "(.*)"$`},
		"sdk/typescript/package.json":      {`"version": "(.*)"`},
		"sdk/typescript/package-lock.json": {`"version": "(.*)"`, `"packages": \{\s+"": \{\s+"name": ".*",\s+"version": "(.*)"`},
		"deploy/helm/paddock/Chart.yaml":   {`(?m)^version: (.*)$`, `(?m)^appVersion: (.*)$`},
		"CHANGELOG.md":                     {`(?m)^## \[(\d.*)\]`},
	} {
		for _, place := range places {
			if got := regexp.MustCompile(place).FindStringSubmatch(readRoot(t, file)); got == nil || got[1] != version[1] {
				t.Errorf("%s has not the version of openapi.yaml, %s, at %s; run make set-version VERSION=…", file, version[1], place)
			}
		}
	}
}

// readRoot returns the text of a file in the root of the repository.
func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
