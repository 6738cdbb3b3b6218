package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// switchName stands in a mutant's text for the condition that this mutant runs.
const switchName = "MUTATED"

// otherMutants are found by tests of their own.
var (
	noEpochCheck = mutant{name: "a replaced database is not noticed", file: "store/internal/epoch/epoch.go",
		from: "func (e Epoch) Check(k Known) error {\n",
		to:   "func (e Epoch) Check(k Known) error {\n\tif MUTATED && k.trees.Of(e) {\n\t\treturn nil\n\t}\n"}
	joinsFirst = mutant{name: "joins go among renewals", file: "store/internal/engine/inbox.go",
		from: "\t\treturn c.Wait > 0\n", to: "\t\treturn c.Wait > 0 && !MUTATED\n"}
	noMutant = mutant{name: "none of them"} // runs as Paddock
)

func allMutants() []mutant {
	all := append(slices.Clone(mutants), noEpochCheck, joinsFirst)
	for _, c := range slices.Concat(stages, sessionStages) {
		all = append(all, c.mutant)
	}
	return all
}

// mutatedBuild builds all mutants as one program, and returns its path: building each would take longer than finding
// it. The program runs as the mutant that its file is named after, see switchFile; under any other name it is Paddock.
var mutatedBuild = sync.OnceValues(func() (string, error) { return buildMutants(false) })

func buildMutants(raced bool) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	overlay, err := mutantOverlay(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprint("mutants-raced-", raced))
	return path, compile(path, raced, "-overlay", overlay)
}

// build returns the path of a program that runs as the mutant.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	all, err := mutatedBuild()
	if err != nil {
		t.Fatal(err)
	}
	return m.linkTo(t, all)
}

// linkTo links the program of all mutants, so that it runs as the mutant.
func (m mutant) linkTo(t *testing.T, all string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), m.fileName())
	if err := os.Symlink(all, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// fileName returns the name of the mutant's program.
func (m mutant) fileName() string { return "mutant-" + strings.ReplaceAll(m.name, " ", "-") }

// switchFile is added to each package that has a mutant. A replaced SQL text has no conditions, so package
// database replaces it when it reads the file.
const switchFile = `package %s

import (
	"os"
	"path/filepath"
)

var mutantName = filepath.Base(os.Args[0])

func mutantRuns(name string) bool { return mutantName == name }
`

// The last line of the function of package database that reads an SQL file, and the same with mutants.
const (
	readStatement    = "\treturn string(text)\n}\n"
	mutatedStatement = "\treturn mutated(name, string(text))\n}\n"
)

// mutantOverlay writes the files for go build -overlay to dir, and returns the path of the overlay.
func mutantOverlay(dir string) (string, error) {
	o := overlay{dir: dir, replace: map[string]string{}}
	statements := "package database\n\nimport \"strings\"\n\nfunc mutated(name, text string) string {\n\tswitch {\n"
	for _, m := range allMutants() {
		if sql, ok := strings.CutSuffix(filepath.Base(m.file), ".sql"); ok {
			if _, err := o.changed(m.file, m.from, m.to); err != nil {
				return "", err
			}
			statements += fmt.Sprintf("\tcase mutantRuns(%q) && name == %q:\n\t\treturn strings.Replace(text, %q, %q, 1)\n",
				m.fileName(), sql, m.from, m.to)
			continue
		}
		condition := fmt.Sprintf("mutantRuns(%q)", m.fileName())
		if err := o.change(m.file, m.from, strings.ReplaceAll(m.to, switchName, condition)); err != nil {
			return "", err
		}
		folder := filepath.Dir(m.file)
		if err := o.add(folder+"/mutant_switch.go", fmt.Sprintf(switchFile, filepath.Base(folder))); err != nil {
			return "", err
		}
	}
	const database = "store/internal/database/"
	err := errors.Join(
		o.change(database+"transaction.go", readStatement, mutatedStatement),
		o.add(database+"mutant_statements.go", statements+"\t}\n\treturn text\n}\n"),
		o.add(database+"mutant_switch.go", fmt.Sprintf(switchFile, "database")),
		o.changeClock(),
		o.skewWallClock(),
	)
	if err != nil {
		return "", err
	}
	return o.write()
}

// An overlay collects changes of source files for go build -overlay.
type overlay struct {
	dir     string            // where the changed files are written
	replace map[string]string // the path of a file, to that of its replacement
}

// source returns the path of a file of Paddock's, or of Go's if it is absolute.
func source(file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	return filepath.Abs(filepath.Join("../..", file))
}

// changed returns the file with the text replaced, which must occur exactly once.
func (o overlay) changed(file, from, to string) (string, error) {
	path, err := source(file)
	if err != nil {
		return "", err
	}
	if before, ok := o.replace[path]; ok {
		path = before
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), from); n != 1 {
		return "", fmt.Errorf("update the mutant: %s contains this text %d times, want once:\n%s", file, n, from)
	}
	return strings.Replace(string(text), from, to, 1), nil
}

// change replaces a text in a file, after earlier changes of the same file.
func (o overlay) change(file, from, to string) error {
	text, err := o.changed(file, from, to)
	if err != nil {
		return err
	}
	return o.add(file, text)
}

// add adds or replaces a file.
func (o overlay) add(file, text string) error {
	path, err := source(file)
	if err != nil {
		return err
	}
	o.replace[path] = filepath.Join(o.dir, strings.ReplaceAll(file, "/", "-")+".txt")
	return os.WriteFile(o.replace[path], []byte(text), 0o600)
}

// write writes the overlay and returns its path.
func (o overlay) write() (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.dir, "mutants.json")
	return path, os.WriteFile(path, text, 0o600)
}
