package row

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/swap.sql instead of comparing it")

// TestSwapAsRendered compares two variants of sql/swap.sql with testdata/swap.sql, which is there to be read.
func TestSwapAsRendered(t *testing.T) {
	t.Parallel()
	const path = "testdata/swap.sql"
	got := "-- sql/swap.sql as PostgreSQL gets it, without its comment, and with long lines broken. Made by go test -update.\n"
	for _, c := range []struct {
		about string
		variant
	}{
		{"One change with events, such as a release.", variant{Single: true, Events: true}},
		{"Everything: several locks in a session, with queues and under new lease_ids, while other sessions lose leases.",
			variant{Endings: true, Parts: true, Events: true, Sessions: true, Losses: true, AllOrNone: true}},
	} {
		_, text, _ := strings.Cut(render("swap", c.variant), "\nwith ")
		got += "\n-- " + c.about + "\n" + wrapped("with "+strings.TrimRight(text, "\n")) + ";\n"
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what swap.sql renders to (%v); read the change, then run go test -run %s -update", path, err, t.Name())
	}
}

// wrapped breaks long lines after commas.
func wrapped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+4)
		for len(line) > 120 {
			at := strings.LastIndex(line[:120], ", ")
			if at < 0 {
				break
			}
			b.WriteString(line[:at+1] + "\n")
			line = indent + line[at+2:]
		}
		b.WriteString(line)
	}
	return b.String()
}
