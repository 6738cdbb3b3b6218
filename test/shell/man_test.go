package shell_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/test/internal/tools"
)

// TestManualPagesAreValid lets mandoc look for mistakes in all pages, and read one.
func TestManualPagesAreValid(t *testing.T) {
	t.Parallel()
	mandoc, dir := tools.Path(t, "mandoc"), t.TempDir()
	output(t, "man", dir)
	pages, err := filepath.Glob(dir + "/*.1")
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	said, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning,stop"}, pages...)...).CombinedOutput()
	if err != nil || len(said) != 0 {
		t.Errorf("%v:\n%s", err, said)
	}
	shown, err := exec.Command(mandoc, "-T", "ascii", filepath.Join(dir, "paddock-run.1")).Output()
	if err != nil || !strings.Contains(string(shown), "    0 3 * * *  paddock run --once-per day --tz Europe/Berlin") {
		t.Errorf("%v:\n%s", err, shown)
	}
}
