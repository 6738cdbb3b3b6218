package lock

import (
	"unicode"
	"unicode/utf8"
)

// Characters that are assigned a visible category and show nothing.
const (
	brailleBlank = '\u2800'
	nullNotehead = '\U0001D159'
)

// checkText returns an ErrInvalid error unless text is fit to be shown to people: valid UTF-8 of min to max
// characters, without control characters, line separators and bidirectional controls, and with at least one
// visible character. Joiners (as in emoji), inner spaces and right-to-left letters are allowed.
func checkText(field, text string, min, max int) error {
	if err := checkCharacters(field, text, min, max); err != nil {
		return err
	}
	visible := false
	for _, r := range text {
		if r < utf8.RuneSelf { // most texts have no other characters, and each acquire is checked
			visible = visible || r != ' '
			continue
		}
		if unicode.In(r, unicode.Zl, unicode.Zp) {
			return Invalid(field, "has a line separator, %U; remove it", r)
		}
		if unicode.Is(unicode.Bidi_Control, r) {
			return Invalid(field, "has a character that changes the direction of text, %U; remove it", r)
		}
		visible = visible || !isInvisible(r)
	}
	if !visible {
		return Invalid(field, "has no visible character; add one")
	}
	return nil
}

// checkCharacters returns an ErrInvalid error unless text is valid UTF-8 of min to max characters, none of them a
// control character. By itself it is for searches: what an older release stored can be found, although checkText
// refuses it today.
func checkCharacters(field, text string, min, max int) error {
	if !utf8.ValidString(text) {
		return Invalid(field, "is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(text); n < min || n > max {
		return Invalid(field, "has %d characters; give %d to %d", n, min, max)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return Invalid(field, "has a control character; remove it")
		}
	}
	return nil
}

// isInvisible reports whether r shows nothing by itself: a space, or a character that Unicode calls default ignorable.
func isInvisible(r rune) bool {
	return r == brailleBlank || r == nullNotehead ||
		unicode.In(r, unicode.Z, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
