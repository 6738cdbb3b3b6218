package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/paddock-lock/paddock"

// A pkg is a package with its imports and all dependencies, without tests.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// modulePackages returns all packages of Paddock's module and of the module test.
func modulePackages(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	for _, folder := range []string{".", "test"} {
		folder = filepath.Join(root, folder)
		if _, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil { // so that the go command reruns the test when go.mod changes
			t.Fatal(err)
		}
		found := list(t, folder, "./...")
		if len(found) == 0 {
			t.Fatalf("%s has no package", folder)
		}
		all = append(all, found...)
	}
	return all
}

// list returns the packages that match the patterns in the module that the folder belongs to.
func list(t *testing.T, folder string, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(),
		"go",
		append([]string{"list", "-C", folder, "-json=ImportPath,Standard,Imports,Deps"}, patterns...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// isIn reports whether the package path is folder or below it.
func isIn(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// modulePaths returns the import paths of folders of the module.
func modulePaths(folders ...string) []string {
	for i := range folders {
		folders[i] = module + "/" + folders[i]
	}
	return folders
}

func TestForbiddenImports(t *testing.T) {
	t.Parallel()
	const pgx, chi = "github.com/jackc/pgx", "github.com/go-chi/chi"
	packages := modulePackages(t)
	for folder, banned := range map[string][]string{
		"server":          append(modulePaths("store", "client", "web", "migrations", "internal/batch", "internal/pgserver"), pgx),
		"web":             append(modulePaths("store", "client", "server", "migrations", "internal/batch", "internal/pgserver"), pgx, chi),
		"store":           append(modulePaths("server", "client", "web", "internal/pgserver"), chi, "net/http"),
		"client":          append(modulePaths("server", "store", "web", "migrations", "internal/pgserver"), chi, pgx),
		"api":             append(modulePaths("lock", "server", "store", "client", "web", "migrations", "internal"), chi, pgx),
		"internal/wire":   append(modulePaths("server", "store", "web", "migrations", "internal/batch", "client", "access"), chi, pgx),
		"client/guard":    append(modulePaths("server", "store", "web", "migrations", "internal/batch", "internal/pgserver", "client"), chi, pgx, "net/http"),
		"client/pgfence":  append(modulePaths("server", "store", "web", "migrations", "internal/batch", "internal/pgserver", "client"), chi, "net/http"),
		"cell":            append(modulePaths("store", "server", "client", "web", "migrations", "access"), chi, pgx, "net/http"),
		"migrations":      modulePaths("store", "server", "client", "web", "lock"),
		"internal/batch":  append(modulePaths("lock", "store"), "net/http", pgx),
		"access":          append(modulePaths("store", "server", "client", "web", "migrations", "internal"), "net/http", pgx, chi),
		"test/sim":        append(modulePaths("store", "server", "web", "migrations", "access", "internal/batch", "internal/pgserver"), "net/http", pgx, chi),
		"verify":          append(modulePaths("store", "server", "client", "web", "migrations", "access"), pgx, chi),
		"verify/workload": append(modulePaths("store", "server", "client", "web", "migrations", "access"), pgx, chi),
		"cmd/paddock": append(modulePaths("internal/testkit", "internal/arch", "test"),
			"testing", "github.com/testcontainers", "github.com/stretchr/testify", "github.com/chromedp"),
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			found := false
			for _, p := range packages {
				if !isIn(p.ImportPath, module+"/"+folder) ||
					folder == "client" && isIn(p.ImportPath, module+"/client/pgfence") {
					continue // pgfence has its own rule
				}
				found = true
				for _, dep := range p.Deps {
					if slices.ContainsFunc(banned, func(b string) bool { return isIn(dep, b) }) {
						t.Errorf("%s depends on %s", p.ImportPath, dep)
					}
				}
			}
			if !found {
				t.Errorf("no package %s", folder)
			}
		})
	}
}

func TestDomainImportsOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()
	domain := list(t, root, module+"/lock")[0]
	for _, dep := range list(t, root, domain.Deps...) {
		if !dep.Standard {
			t.Errorf("lock depends on %s", dep.ImportPath)
		}
	}
	for _, banned := range []string{"io", "os", "net", "net/http", "database/sql", "log", "log/slog", "math/rand/v2"} {
		if slices.Contains(domain.Imports, banned) {
			t.Errorf("lock imports %s: the domain does no input or output and receives random values", banned)
		}
	}
}

func TestOnlyTheCommandImportsAllParts(t *testing.T) {
	t.Parallel()
	for _, p := range modulePackages(t) {
		if isIn(p.ImportPath, module+"/cmd/paddock") || p.ImportPath == module+"/internal/testkit/replica" {
			continue // replica is the whole service, for tests
		}
		var known []string
		for _, part := range modulePaths("store", "server", "client", "web") {
			if p.ImportPath == part || slices.Contains(p.Deps, part) {
				known = append(known, part)
			}
		}
		if len(known) > 1 {
			t.Errorf("%s depends on %v; only cmd/paddock may depend on more than one of them", p.ImportPath, known)
		}
	}
}

func TestProductionCodeDoesNotDependOnTesting(t *testing.T) {
	t.Parallel()
	tests := modulePaths("internal/testkit", "test")
	isTest := func(path string) bool {
		return slices.ContainsFunc(tests, func(folder string) bool { return isIn(path, folder) })
	}
	for _, p := range modulePackages(t) {
		if isTest(p.ImportPath) {
			continue
		}
		for _, dep := range p.Deps {
			if dep == "testing" || isTest(dep) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}
