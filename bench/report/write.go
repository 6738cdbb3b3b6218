package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/soak"
)

// The lines of a page between which Write replaces the text.
const (
	begin = "<!-- figures: made by `bench report` from results.json, not by hand -->"
	end   = "<!-- end of the figures -->"
)

// Write regenerates the figures of a page and its plots. The plots go to a directory beside the page
// with the same name. An empty soak is left out.
func Write(page string, f result.File, long soak.File) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, foundBegin := bytes.Cut(text, []byte(begin))
	_, after, foundEnd := bytes.Cut(rest, []byte(end))
	if !foundBegin || !foundEnd {
		return fmt.Errorf("%s must contain the two lines that enclose the figures:\n%s\n%s", page, begin, end)
	}
	folder := strings.TrimSuffix(page, filepath.Ext(page))
	figures, plots := render(f, filepath.Base(folder))
	figures = strings.TrimSuffix(figures+"\n"+Soak(long), "\n")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, p := range plots {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(p.svg()), 0o644); err != nil {
			return err
		}
	}
	made := fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, begin, figures, end, after)
	return os.WriteFile(page, made, 0o644)
}

// render returns the figures in Markdown, with references to plots in the folder, and the plots by file
// name.
func render(f result.File, folder string) (string, map[string]plot) {
	var out strings.Builder
	plots := map[string]plot{}
	for i, part := range f.Parts {
		if i == 0 || part.Machine != f.Parts[i-1].Machine {
			out.WriteString(describeMachine(part.Machine) + "\n")
		}
		all := comparisons(part.Runs)
		fmt.Fprintf(&out, "### %s\n\n%s", part.Title, overview(all))
		for _, b := range all {
			fmt.Fprintf(&out, "#### %s\n\n", b.title)
			if len(b.rows) > 1 && !b.rows[0].runs[0].Paced {
				b.show(&out, plots, folder, part.Title, "rate", b.rates())
			}
			if b.workload == cpuPlotWorkload {
				b.show(&out, plots, folder, part.Title, "cpu", b.costs())
			}
			out.WriteString(b.table() + "\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n"), plots
}

// cpuPlotWorkload is the workload for which the CPU time is plotted.
const cpuPlotWorkload = "distinct-64"

// show adds a plot and a reference to it.
func (b comparison) show(out *strings.Builder, plots map[string]plot, folder, part, kind string, p plot) {
	name := b.workload + "-" + kind + ".svg"
	if _, taken := plots[name]; taken {
		name = slug(part) + "-" + name
	}
	plots[name] = p
	fmt.Fprintf(out, "![%s](%s/%s)\n\n", b.title, folder, name)
}

// slug returns a text in a form for file names.
func slug(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
}

// describeMachine describes the machine and the versions.
func describeMachine(m result.Machine) string {
	return fmt.Sprintf("Measured on %s: %s, %d cores, %s of memory, %s, Linux %s, %s, %s, Paddock at %s.\n",
		m.At.Format("2 January 2006"), m.CPU, m.Cores, m.Memory, m.System, m.Kernel, m.Postgres, m.Go, m.Paddock)
}

// overview returns a table of all systems and the workloads with the unit of the first one, empty if there is only one
// such workload.
func overview(all []comparison) string {
	var same []comparison
	for _, b := range all {
		if len(same) == 0 || b.unit == same[0].unit {
			same = append(same, b)
		}
	}
	if len(same) < 2 {
		return ""
	}
	cells := [][]string{{same[0].unit + " a second"}}
	lines := map[string]int{}
	for i, b := range same {
		cells[0] = append(cells[0], b.workload)
		for _, w := range b.rows {
			n, ok := lines[w.system]
			if !ok {
				n, lines[w.system] = len(cells), len(cells)
				cells = append(cells, append([]string{w.title}, make([]string, len(same))...))
			}
			cells[n][i+1] = formatWhole(w.rate.median) + unitSuffix(w.unit, b.unit)
		}
	}
	return markdown(cells) + "\n"
}

// Text returns only the tables, for the terminal.
func Text(runs []result.Run) string {
	var out strings.Builder
	for _, b := range comparisons(runs) {
		fmt.Fprintf(&out, "\n%s\n\n%s", b.title, b.table())
	}
	return out.String()
}
