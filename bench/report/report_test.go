package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/soak"
)

// measured returns three rounds of two systems and of a third that fails. The machine is slower in the
// second round.
func measured() []result.Run {
	var runs []result.Run
	wal, fsyncs := 322.4, 0.08
	for i, speed := range []float64{1, 0.5, 1.2} {
		base := result.Run{
			Workload: "distinct-64", WorkloadTitle: "Pairs & names", Unit: "pairs", Round: i + 1, Operations: 1000,
			Latency: map[string]result.Quantile{"acquire": {Count: 9, P50: 1000, P99: 4000}},
		}
		ours, other, broken := base, base, base
		ours.System, ours.Title, ours.PerSecond, ours.CPU = "paddock", "Paddock", 12000*speed, result.CPU{Client: 26, Server: 60, Database: 27}
		ours.WALBytes, ours.Fsyncs = &wal, &fsyncs
		other.System, other.Title, other.PerSecond, other.CPU = "other", "The <other>", 6000*speed, result.CPU{Client: 30, Server: 90}
		broken.System, broken.Title, broken.Error = "broken", "Broken", "exclusion is broken"
		runs = append(runs, ours, other, broken)
	}
	return runs
}

const wantTable = `
Pairs & names

|             |        pairs a second |       Paddock does | acquire, p50 / p99 in µs | CPU: client + server + database, µs | WAL bytes | fsyncs | operations |
| ----------- | --------------------: | -----------------: | -----------------------: | ----------------------------------: | --------: | -----: | ---------: |
| Paddock     | 12,000 (6,000–14,400) |                  1 |            1,000 / 4,000 |                        26 + 60 + 27 |       322 |  0.080 |      3,000 |
| The <other> |   6,000 (3,000–7,200) | × 2.00 (2.00–2.00) |            1,000 / 4,000 |                         30 + 90 + 0 |           |        |      3,000 |
`

func TestSystemsAreComparedWithinARound(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(wantTable, Text(measured())); diff != "" {
		t.Error(diff)
	}
}

func TestWriteReplacesTheGeneratedPart(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "figures.md")
	if err := os.WriteFile(page, []byte("# Before\n\n"+begin+"\nold\n"+end+"\n\nAfter.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := result.File{Parts: []result.Part{{Title: "Side by side", Machine: result.Machine{Cores: 2, CPU: "a processor"}, Runs: measured()}}}
	var first []byte
	for range 2 { // the second Write must not change anything
		if err := Write(page, file, soak.File{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && string(first) != string(text) {
			t.Error(cmp.Diff(string(first), string(text)))
		}
		first = text
	}
	for _, want := range []string{
		"# Before\n\n" + begin, end + "\n\nAfter.\n", "a processor, 2 cores", "### Side by side\n", "#### Pairs & names\n",
		"![Pairs & names](figures/distinct-64-rate.svg)", "![Pairs & names](figures/distinct-64-cpu.svg)", "| The <other> |",
	} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	if strings.Contains(string(first), "\nold\n") || strings.Contains(string(first), "Broken") {
		t.Errorf("the page still has old figures or failed runs:\n%s", first)
	}
}

func TestWriteRefusesAPageWithoutMarkers(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(page, result.File{}, soak.File{}); err == nil || !strings.Contains(err.Error(), "must contain the two lines") {
		t.Errorf("got %v", err)
	}
}

func TestPlotsAreValidXMLWithAllTexts(t *testing.T) {
	t.Parallel()
	_, plots := render(result.File{Parts: []result.Part{{Runs: measured()}}}, "figures")
	if len(plots) != 2 {
		t.Errorf("there are %d plots", len(plots))
	}
	for name, p := range plots {
		svg := p.svg()
		d := xml.NewDecoder(strings.NewReader(svg))
		texts := ""
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, svg)
			}
			if chars, ok := token.(xml.CharData); ok {
				texts += string(chars)
			}
		}
		if !strings.Contains(texts, "The <other>") || !strings.Contains(texts, "Paddock") {
			t.Errorf("%s has the texts %s", name, texts)
		}
	}
}

func TestPaddockVariantsAreComparedWithTheFirst(t *testing.T) {
	t.Parallel()
	var runs []result.Run
	for i, name := range []string{"paddock-1k", "paddock-1m"} {
		for round := range 2 {
			runs = append(runs, result.Run{System: name, Title: name, Unit: "pairs", Workload: "growth-64", Round: round + 1, PerSecond: float64(1000 - 100*i*(round+1))})
		}
	}
	if text := Text(runs); !strings.Contains(text, "of the first") || !strings.Contains(text, "100 %") || !strings.Contains(text, "85 (80–90) %") {
		t.Error(text)
	}
}

func TestPacedRunsAreNotCompared(t *testing.T) {
	t.Parallel()
	r := result.Run{System: "paddock", Title: "Paddock", Workload: "renew-10000", WorkloadTitle: "Leases", Unit: "renewals", Paced: true, PerSecond: 1000, CPU: result.CPU{Server: 60, Database: 30}, Memory: &result.Memory{Before: 7 << 20, During: 500 << 20, After: 9 << 20}}
	other := r
	other.System, other.Title = "paddock-sdk", "SDK"
	text := Text([]result.Run{r, other})
	if !strings.Contains(text, "9.0 %") || !strings.Contains(text, "7 / 500 / 9") || strings.Contains(text, "Paddock does") {
		t.Error(text)
	}
}

func TestASoakIsReportedInFewLines(t *testing.T) {
	t.Parallel()
	var f soak.File
	for i := range 60 {
		f.Intervals = append(f.Intervals, soak.Interval{
			Minutes: float64(i + 1), Server: int64(40+i) << 20, Tables: 300 << 20, Rows: 12345,
			Run: result.Run{PerSecond: 9876, WorkloadTitle: "Pairs", Latency: map[string]result.Quantile{"acquire": {P50: 2000, P99: 9000}}},
		})
	}
	text := Soak(f)
	for _, want := range []string{"### 60 minutes", "| 60     |", "memory of paddock serve, MB", "**no**", "12,345"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "9,876"); lines > maxRows+2 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}
