package arch_test

import (
	"bufio"
	_ "embed"
	"flag"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

//go:embed words.txt
var wordsFile string

var wordsUnder = flag.String("words.under", "", "check the words of files under this folder only")

type wordList struct {
	phrases      []*regexp.Regexp
	names, parts []string
}

func readWords(t *testing.T) wordList {
	t.Helper()
	var l wordList
	for s := bufio.NewScanner(strings.NewReader(wordsFile)); s.Scan(); {
		kind, rest, _ := strings.Cut(strings.TrimSpace(s.Text()), " ")
		switch word, _, _ := strings.Cut(rest, " "); kind {
		case "", "#":
		case "phrase":
			l.phrases = append(l.phrases, regexp.MustCompile(`(?i)`+rest))
		case "name":
			l.names = append(l.names, word)
		case "part":
			l.parts = append(l.parts, word)
		default:
			t.Fatalf("words.txt has the line %q; begin it with phrase, name, part or #", s.Text())
		}
	}
	return l
}

func isChecked(path string) bool { return strings.HasPrefix(path, *wordsUnder) }

// TestNoPrivateWords checks identifiers and comments of Go files against words.txt.
func TestNoPrivateWords(t *testing.T) {
	t.Parallel()
	list := readWords(t)
	eachGoFile(t, func(path string, set *token.FileSet, f *ast.File) {
		if !isChecked(path) {
			return
		}
		for _, group := range f.Comments {
			list.checkText(t, path, set.Position(group.Pos()).Line, group.Text())
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, id := range declared(n) {
				list.checkName(t, path, set.Position(id.Pos()).Line, id.Name)
			}
			return true
		})
	})
}

// TestDocumentsHaveNoPrivateWords checks Markdown, SQL, openapi.yaml and the page's templates.
func TestDocumentsHaveNoPrivateWords(t *testing.T) {
	t.Parallel()
	list, seen := readWords(t), 0
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), !slices.Contains([]string{".md", ".sql", ".gohtml"}, filepath.Ext(path)) && path != "openapi.yaml", !isChecked(path):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		seen++
		list.checkText(t, path, 1, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 && *wordsUnder == "" {
		t.Error("no document was found")
	}
}

// checkText reports the phrases that a text has, which begins at that line of the file.
func (l wordList) checkText(t *testing.T, path string, first int, text string) {
	t.Helper()
	for _, phrase := range l.phrases {
		for _, at := range phrase.FindAllStringIndex(text, -1) {
			t.Errorf("%s:%d: %q: see internal/arch/words.txt", path, first+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]])
		}
	}
}

func (l wordList) checkName(t *testing.T, path string, line int, name string) {
	t.Helper()
	if slices.Contains(l.names, name) {
		t.Errorf("%s:%d: the name %s: see internal/arch/words.txt", path, line, name)
	}
	for _, part := range camelWords(name) {
		if slices.Contains(l.parts, part) {
			t.Errorf("%s:%d: the name %s has the word %s: see internal/arch/words.txt", path, line, name, part)
		}
	}
}

// declared returns the identifiers that a node declares: functions, types, fields, parameters, constants and
// variables.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return nil
		}
		var names []*ast.Ident
		for _, left := range n.Lhs {
			if id, ok := left.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
		return names
	}
	return nil
}

// camelWords splits an identifier in camel case into words that begin with a capital.
func camelWords(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			words, start = append(words, name[start:i]), i
		}
	}
	words = append(words, name[start:])
	for i, word := range words {
		words[i] = strings.ToUpper(word[:min(len(word), 1)]) + word[min(len(word), 1):]
	}
	return words
}
