package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// root is the folder of the module. The go command reruns the tests when a file that they read has changed.
const root = "../.."

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z0-9]\w*`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	mdFence  = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	mdLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdTitle  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// repoPath matches a code span that names a file or folder of this repository.
	repoPath = regexp.MustCompile(`^(?:\.ci|access|bench|cell|client|cmd|docs|internal|lock|migrations|` +
		`sdk|server|store|test|verify|web)/[\w./-]*$`)
)

// TestDocumentsNameTestsThatExist compares the tests named in Markdown with those of the repository.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	eachFile(t, "_test.go", func(_, text string) {
		for _, f := range testFunc.FindAllStringSubmatch(text, -1) {
			exists[f[1]] = true
		}
	})
	eachFile(t, ".md", func(path, text string) {
		for _, name := range testName.FindAllString(text, -1) {
			if !exists[name] {
				t.Errorf("%s names %s, which does not exist; correct the name", path, name)
			}
		}
	})
}

// TestDocumentsNameFilesThatExist follows the relative links of Markdown, with their anchors, and looks up the
// code spans that are paths of this repository.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{}
	eachFile(t, ".md", func(path, text string) { anchors[path] = headings(text) })
	eachFile(t, ".md", func(path, text string) {
		text = mdFence.ReplaceAllString(text, "")
		for _, link := range mdLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
			}
			if !inRepository(file) {
				t.Errorf("%s links to %s, which does not exist", path, link[1])
			} else if known, ok := anchors[file]; anchor != "" && ok && !known[anchor] {
				t.Errorf("%s links to %s, but %s has no such heading", path, link[1], file)
			}
		}
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			if repoPath.MatchString(span[1]) && !inRepository(span[1]) {
				t.Errorf("%s names %s, which does not exist", path, span[1])
			}
		}
	})
}

// TestAlertsLinkToTheirRunbooks follows the runbook_url of each alert: a person who is woken up opens it.
func TestAlertsLinkToTheirRunbooks(t *testing.T) {
	t.Parallel()
	const page = "docs/operations.md"
	known := headings(readRoot(t, page))
	alerts := strings.Split(readRoot(t, "deploy/prometheus/alerts.yaml"), "- alert: ")[1:]
	alerts = append(alerts, strings.Split(readRoot(t, "deploy/ha/alerts.yaml"), "- alert: ")[1:]...)
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, "\n")
		anchor := strings.ToLower(name)
		if !strings.Contains(alert, "\n          runbook_url: https://github.com/paddock-lock/paddock/blob/main/"+page+"#"+anchor+"\n") {
			t.Errorf("%s has no runbook_url that leads to #%s of %s", name, anchor, page)
		}
		if !known[anchor] {
			t.Errorf("%s has no heading %s; say there what the alert means and what to do", page, name)
		}
	}
	if len(alerts) < 16 {
		t.Errorf("found %d alerts; want all", len(alerts))
	}
}

// TestInstallNamesWhatAReleaseHas compares the README with the places that name what is published.
func TestInstallNamesWhatAReleaseHas(t *testing.T) {
	t.Parallel()
	_, install, _ := strings.Cut(readRoot(t, "README.md"), "\n## Install\n")
	install, _, _ = strings.Cut(install, "\n## ")
	for line, place := range map[string]struct{ file, pattern string }{
		"go get %s\n":              {"go.mod", `(?m)^module (\S+)$`},
		"npm install %s\n":         {"sdk/typescript/package.json", `"name": "([^"]+)"`},
		"pip install %s\n":         {"sdk/python/pyproject.toml", `(?m)^name = "([^"]+)"$`},
		"docker run --rm %s ":      {"deploy/helm/paddock/values.yaml", `(?m)^  repository: (\S+)$`},
		"/%s_linux_amd64.tar.gz ":  {".ci/release", `name=(\w+)_\$`},
		"/%s_linux_amd64.deb\n":    {".ci/release", `-t "\$dist/(\w+)_linux_\$1\.\$kind"`},
		"sudo install %s_linux_am": {".ci/release", `name=(\w+)_\$`},
	} {
		found := regexp.MustCompile(place.pattern).FindStringSubmatch(readRoot(t, place.file))
		if found == nil {
			t.Errorf("%s does not match %s", place.file, place.pattern)
		} else if want := strings.Replace(line, "%s", found[1], 1); !strings.Contains(install, want) {
			t.Errorf("the README does not have %q, which is the name in %s", want, place.file)
		}
	}
}

func inRepository(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

// headings returns the anchors that GitHub makes of the headings of a page.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for _, title := range mdTitle.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title[1])] = true
	}
	return all
}

// eachFile calls do for each file of the repository whose name has the suffix.
func eachFile(t *testing.T, suffix string, do func(path, text string)) {
	t.Helper()
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := fs.ReadFile(files, path)
		do(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// alarmEntry matches the messages at the beginning of an entry of docs/operations.md's list of alarms.
var alarmEntry = regexp.MustCompile("(?m)^- (`[^`]+`(?:,? and\\s+`[^`]+`)?)")

// TestLogMessagesWorthAnAlarmExist compares docs/operations.md with the messages in the code: operators grep for them.
func TestLogMessagesWorthAnAlarmExist(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	eachFile(t, ".go", func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") {
			code.WriteString(text)
		}
	})
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Log messages worth an alarm\n")
	section, _, _ = strings.Cut(section, "\n### On the PostgreSQL primary\n")
	found := 0
	for _, entry := range alarmEntry.FindAllStringSubmatch(section, -1) {
		for _, message := range codeSpan.FindAllStringSubmatch(entry[1], -1) {
			found++
			literal := `"` + strings.Join(strings.Fields(message[1]), " ") + `"`
			literal = strings.TrimSuffix(literal, `…"`) // the rest of a long message
			if !strings.Contains(code.String(), literal) {
				t.Errorf("docs/operations.md lists the log message %s, which no code logs", literal)
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d log messages in docs/operations.md; want the whole list", found)
	}
}
