package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
)

// A table is what a command prints for people: blocks of rows under titles, of labelled values, or of text, with an
// empty line between them. Its cells are escaped for a terminal.
type table struct{ blocks []*block }

// A block is a part of a table. The first row of a grid has its titles, a row of fields is a label and a value, and a
// row of text is one cell.
type block struct {
	kind blockKind
	rows [][]string
}

type blockKind int

const (
	grid blockKind = iota
	fields
	text
)

// head begins a grid with these titles.
func (t *table) head(titles ...string) {
	t.blocks = append(t.blocks, &block{kind: grid})
	t.row(titles...)
}

// row adds a row to the grid.
func (t *table) row(cells ...string) { t.add(grid, cells) }

// field adds a label with its value.
func (t *table) field(label, value string) { t.add(fields, []string{label, value}) }

// text adds a line of text.
func (t *table) text(line string) { t.add(text, []string{line}) }

func (t *table) add(kind blockKind, cells []string) {
	if n := len(t.blocks); n == 0 || t.blocks[n-1].kind != kind {
		t.blocks = append(t.blocks, &block{kind: kind})
	}
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = printable.Text(cell)
	}
	last := t.blocks[len(t.blocks)-1]
	last.rows = append(last.rows, escaped)
}

// A style is how a table is shown. The zero value is that of a file or a pipe: in full, without colours.
type style struct {
	width  int  // of the terminal, in columns; zero: not cut
	colour bool // whether states are coloured
}

// write writes the table.
func (t *table) write(w io.Writer, s style) error {
	var lines []string
	for i, b := range t.blocks {
		if i > 0 {
			lines = append(lines, "")
		}
		switch b.kind {
		case grid:
			lines = append(lines, s.grid(b.rows)...)
		case fields:
			lines = append(lines, s.fields(b.rows)...)
		case text:
			for _, row := range b.rows {
				lines = append(lines, s.fold(row[0], 0, 0)...)
			}
		}
	}
	_, err := io.WriteString(w, strings.Join(append(lines, ""), "\n"))
	return err
}

// columnGap is the number of spaces between two columns.
const columnGap = 2

// grid returns the lines of rows, the first of which has the titles, cut to the width.
func (s style) grid(rows [][]string) []string {
	titles := rows[0]
	if s.width > 0 && sum(widthsOf(rows)) > s.width {
		rows = withShortInstants(rows)
	}
	natural := widthsOf(rows)
	if i := slices.Index(titles, "LEFT"); i >= 0 && s.width > 0 {
		natural[i] = max(natural[i], leftWidth)
	}
	widths := fit(titles, natural, s.width)
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = s.line(titles, row, widths)
	}
	return lines
}

// leftWidth is the least width of the column LEFT on a terminal, that of 59m59s: in a view that is redrawn each second the
// columns must stay where they are.
const leftWidth = 6

// line returns a row, with cells of these widths. A column of the width zero is left out.
func (s style) line(titles, row []string, widths []int) string {
	var b strings.Builder
	space := 0
	for i, cell := range row {
		if widths[i] == 0 {
			continue
		}
		cell = screen.Truncate(cell, widths[i], "…")
		b.WriteString(strings.Repeat(" ", space))
		b.WriteString(s.paint(titles[i], cell))
		space = max(widths[i]-screen.StringWidth(cell), 0) + columnGap
	}
	return strings.TrimRight(b.String(), " ")
}

// fields returns the lines of labels and values. A value that is too long stands below its label, uncut: it may be a
// lease_id, which is needed in full.
func (s style) fields(rows [][]string) []string {
	indent := widthsOf(rows)[0] + columnGap
	var lines []string
	for _, row := range rows {
		label, value := row[0], row[1]
		if s.width > 0 && indent+screen.StringWidth(value) > s.width {
			lines = append(append(lines, label), s.fold(value, columnGap, 0)...)
			continue
		}
		lines = append(lines, strings.TrimRight(screen.FillRight(label, indent)+s.paint(label, value), " "))
	}
	return lines
}

// fold returns text in lines that fit, with an indentation, and a deeper one by hang after the first. It breaks at spaces,
// or in a word that is longer than a line.
func (s style) fold(line string, indent, hang int) []string {
	space := strings.Repeat(" ", indent)
	if s.width == 0 {
		return []string{space + line}
	}
	var lines []string
	for {
		room := max(s.width-len(space), 1)
		if screen.StringWidth(line) <= room {
			break
		}
		part := screen.Truncate(line, room, "")
		if part == "" {
			break // not even one character fits
		}
		rest := line[len(part):]
		if i := strings.LastIndexByte(part, ' '); i > 0 && rest[0] != ' ' {
			part, rest = part[:i], line[i:]
		}
		lines, line = append(lines, space+part), strings.TrimLeft(rest, " ")
		space = strings.Repeat(" ", indent+hang)
	}
	return append(lines, space+line)
}

// screen measures text in columns of a terminal. It depends on no locale.
var screen = &runewidth.Condition{StrictEmojiNeutral: true}

// widthsOf returns the width of the widest cell of each column.
func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], screen.StringWidth(cell))
		}
	}
	return widths
}

// sum returns the width of a line of columns, those of the width zero left out.
func sum(widths []int) (total int) {
	for _, w := range widths {
		if w > 0 {
			total += w + columnGap
		}
	}
	return max(total-columnGap, 0)
}

// leastFirst are the titles of columns in the order in which they are left out where a table is too wide. After them
// other columns follow, the last one first. The first column of a table stays.
var leastFirst = []string{
	"SET", "CREATED", "SINCE", "OPENED", "JOINED", "ACQUIRED", "DECLARED", "CHANGED", "EXPIRES", "METADATA",
	"TOGETHER WITH", "TIMELINE", "PLACE", "ID", "MODE", "TOKEN", "BY", "BELOW", "MAX LEASE", "QUORUM", "FROM", "WAITED",
	"LEASES", "MAX LEASES", "MIN GRACE", "CAPACITY", "WAITING", "REASON", "DETAILS",
}

// texts are the titles of columns whose cells still tell something when they are cut.
var texts = []string{
	"LOCK", "HOLDER", "BY", "REASON", "DETAILS", "METADATA", "NAME", "VALUE", "SCOPE", "TREE", "TOGETHER WITH", "BLOCKED BY",
	"PREFIXES", "NO GRANTS", "UNTIL", "CHAIN", "WAITS FOR", "IN THE WAY", "HELD ABOVE", "HELD BELOW", "END",
}

// minText is the least width of a column of texts, unless all of them are shorter. The first column keeps half of the
// line: the names of locks often differ in their ends only.
const minText = 8

// fit returns the widths of columns so that a line has the total width at most: the columns that matter least get the
// width zero, and the widest of texts are cut. A total of zero means no limit.
func fit(titles []string, natural []int, total int) []int {
	widths := slices.Clone(natural)
	if total == 0 {
		return widths
	}
	least := make([]int, len(natural))
	for i, w := range natural {
		least[i] = w
		if slices.Contains(texts, titles[i]) {
			least[i] = min(w, minText)
			if i == 0 {
				least[i] = min(w, max(minText, total/2))
			}
		}
	}
	for sum(least) > total {
		i := leastImportant(titles, least)
		if i == 0 { // the only one that is left
			return append([]int{min(widths[0], total)}, widths[1:]...)
		}
		least[i], widths[i] = 0, 0
	}
	for sum(widths) > total {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
	return widths
}

// leastImportant returns the column to leave out next, of those whose width is not zero. It is 0 if no other is left.
func leastImportant(titles []string, widths []int) int {
	found, rank := 0, len(leastFirst)+1
	for i := 1; i < len(titles); i++ {
		r := slices.Index(leastFirst, titles[i])
		if r < 0 {
			r = len(leastFirst)
		}
		if widths[i] > 0 && (r < rank || r == rank && r == len(leastFirst)) {
			found, rank = i, r
		}
	}
	return found
}

// instants matches an instant as local and localPrecise return it.
var instants = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// shortInstant is how a narrow terminal shows an instant.
const shortInstant = "01-02 15:04:05"

// withShortInstants returns the rows with instants in a form that fits into a narrow terminal.
func withShortInstants(rows [][]string) [][]string {
	short := make([][]string, len(rows))
	for i, row := range rows {
		short[i] = slices.Clone(row)
		for j, cell := range row {
			if !instants.MatchString(cell) {
				continue
			}
			if at, err := time.Parse(time.RFC3339, cell); err == nil {
				short[i][j] = at.Format(shortInstant)
			}
		}
	}
	return short
}

// The colours, by what they mean: a lock that is held; one that is not free although its lease has ended; and one that
// an operator has to look at.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// paint returns the cell in the colour of its meaning.
func (s style) paint(title, cell string) string {
	colour := ""
	switch title {
	case "STATE", "LEFT":
		colour = map[string]string{"held": green, "grace": yellow, "revoked, grace": yellow, "suspect": red}[cell]
	case "NO GRANTS":
		if strings.HasPrefix(cell, "frozen") {
			colour = red
		}
	case "FROZEN":
		colour = red
	}
	if !s.colour || colour == "" || cell == title {
		return cell
	}
	return colour + cell + plain
}

// A column of rows that are printed one by one has a width of its own, since later rows are not known yet.
type column struct {
	title string
	width int
}

// A stream prints rows one by one, in one format: a line each, but documents in YAML.
type stream struct {
	*program
	format  string
	columns []column
	titles  []string
	widths  []int
	style   style
	begun   bool
}

// stream returns a stream of rows.
func (p *program) stream(format string, columns ...column) *stream {
	s := &stream{program: p, format: format, columns: columns, style: p.style(format)}
	natural := make([]int, len(columns))
	for i, c := range columns {
		s.titles, natural[i] = append(s.titles, c.title), c.width
	}
	if s.isNarrow(natural) {
		for i, c := range columns {
			if c.width == instantWidth {
				natural[i] = len(shortInstant)
			}
		}
	}
	s.widths = fit(s.titles, natural, s.style.width)
	return s
}

// instantWidth is the width of a column of instants.
const instantWidth = 25

func (s *stream) isNarrow(natural []int) bool {
	return s.style.width > 0 && sum(natural) > s.style.width
}

// begin prints the titles, once, if the format is a table.
func (s *stream) begin() error {
	if s.begun || !isTable(s.format) {
		return nil
	}
	s.begun = true
	return s.printLine(s.titles)
}

// print prints one row: cells in a table, wire in JSON and YAML, and the name.
func (s *stream) print(wire any, name string, cells ...string) error {
	switch s.format {
	case asJSON:
		return writeJSON(s.stdout, wire, "")
	case asYAML:
		if _, err := io.WriteString(s.stdout, "---\n"); err != nil {
			return err
		}
		return writeYAML(s.stdout, wire)
	case asName:
		return writeNames(s.stdout, []string{name})
	}
	if err := s.begin(); err != nil {
		return err
	}
	escaped := make([]string, len(cells))
	for i, cell := range cells {
		escaped[i] = printable.Text(cell)
	}
	return s.printLine(escaped)
}

// printLine prints a row of a table. Without a terminal no cell is cut.
func (s *stream) printLine(cells []string) error {
	widths := slices.Clone(s.widths)
	if s.style.width == 0 {
		for i, cell := range cells {
			widths[i] = max(widths[i], screen.StringWidth(cell))
		}
	} else if widths[0] == len(shortInstant) {
		cells = withShortInstants([][]string{cells})[0]
	}
	_, err := io.WriteString(s.stdout, s.style.line(s.titles, cells, widths)+"\n")
	return err
}
