package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/arch/filerefs"
)

// TestTheRulesAreReadInOrder: a file of package lock refers to files of its own line, and of the lines before it, in the
// reading order of its doc.go. Files that are not named there come after all of these.
func TestTheRulesAreReadInOrder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "lock")
	text, err := os.ReadFile(filepath.Join(folder, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, order, _ := strings.Cut(string(text), "# Reading order")
	lines := strings.Split(order, "//   - ")
	line := map[string]int{}
	for i, names := range lines {
		for _, name := range regexp.MustCompile(`\w+\.go`).FindAllString(names, -1) {
			line[name] = i
		}
	}
	if len(line) < 10 {
		t.Fatalf("found %d files in the reading order", len(line))
	}
	refs, _, err := filerefs.Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	place := func(file string) int {
		if i, known := line[file]; known {
			return i
		}
		return len(lines)
	}
	wrong := map[string]bool{}
	for _, r := range refs {
		if place(r.To) > place(r.From) && !wrong[r.From+r.To] {
			wrong[r.From+r.To] = true
			t.Errorf("%s refers to %s (%s), which is read after it", r.From, r.To, r.Name)
		}
	}
}
