package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// none stands in a table for what there is not.
const none = "-"

// legible returns text with everything that a terminal would act upon, or not
// show, written out: \x1b, \n, \u202e. A holder's text is somebody else's.
func legible(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteToASCII(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// legibleJSON returns JSON that means the same and is legible. Beyond its spaces,
// what is not printable can stand in strings only, where it can be written \u009b.
func legibleJSON(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		high, low := utf16.EncodeRune(r)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// quoted returns text as one word of a POSIX shell, whatever it holds.
func quoted(text string) string {
	tame := func(r rune) bool {
		return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_@%+:,./-", r))
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !tame(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// short returns d as people say it: to the second, to the tenth of one below ten
// seconds, rounded down.
func short(d time.Duration) string {
	step := time.Second
	if d < 10*time.Second {
		step = 100 * time.Millisecond
	}
	text := d.Truncate(step).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// local returns an instant as the clock on the wall shows it, to the second.
func local(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(time.RFC3339)
}

// A sheet is a table in the making, its columns aligned and its cells legible.
type sheet struct{ *tabwriter.Writer }

func newSheet(w io.Writer) sheet { return sheet{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row adds a row. The errors of writing are Flush's to report.
func (s sheet) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = legible(cell)
	}
	_, _ = io.WriteString(s, strings.Join(cells, "\t")+"\n")
}
