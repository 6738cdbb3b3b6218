package printable

import "testing"

// hostile is text that tries to control the terminal, or to look like other text.
const hostile = "root\x1b[2J\x1b]0;pwned\x07\r\n\t\x00\x7f\u009b31m\u202egnp.exe\u200b \xff é 漢字 😀"

func TestTextEscapesWhatATerminalWouldActOn(t *testing.T) {
	t.Parallel()
	const want = `root\x1b[2J\x1b]0;pwned\a\r\n\t\x00\x7f\u009b31m\u202egnp.exe\u200b \xff é 漢字 😀`
	if got := Text(hostile); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, plain := range []string{"", "root@db-3", `DOMAIN\user`, "two words", "漢字"} {
		if got := Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}
