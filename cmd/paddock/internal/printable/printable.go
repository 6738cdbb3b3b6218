// Package printable writes text from strangers, such as a holder or a reason, so that a terminal or a shell shows it
// and does not act on it.
package printable

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text with every character that a terminal would act on, or not show, as an escape: \x1b, \n, \u202e.
func Text(text string) string {
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

// JSON returns JSON of the same meaning in which every character that cannot be printed is an escape such as \u009b.
// Line ends stay: outside of strings JSON has no other character of that kind.
func JSON(text []byte) []byte {
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

// ShellWord returns text as one word of a POSIX shell, whatever it contains.
func ShellWord(text string) string {
	plain := func(r rune) bool {
		return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_@%+:,./-", r))
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
