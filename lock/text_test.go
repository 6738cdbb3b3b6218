package lock_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// badTexts returns invalid texts by their defect.
func badTexts() map[string]string {
	texts := map[string]string{
		"empty": "", "a space": " ", "spaces of many kinds": "\u0020\u00a0\u2003\u3000", "a tab": "\t", "a newline inside": "a\nb", "NUL": "a\x00",
		"delete": "a\x7f", "a C1 control": "a\u0085", "not UTF-8": "a\xff",
		"a line separator": "a\u2028b", "a paragraph separator": "a\u2029b",
		"a braille blank": "\u2800", "a Hangul filler": "\u3164", "a Hangul choseong filler": "\u115f", "a Hangul jungseong filler": "\u1160",
		"a halfwidth Hangul filler": "\uffa0", "a soft hyphen": "\u00ad", "a zero width space": "\u200b", "a byte order mark": "\ufeff",
		"a joiner": "\u200d", "a variation selector": "\ufe0f", "a grapheme joiner": "\u034f", "a tag": "\U000e0041", "a null notehead": "\U0001d159",
		"several invisible characters": " \u200d\u3164\u2800\ufe0f ",
	}
	for _, control := range "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		texts["a bidirectional control at the beginning "+string(control)] = string(control) + "root"
		texts["a bidirectional control inside "+string(control)] = "root" + string(control) + "nimda"
	}
	return texts
}

// goodTexts returns valid texts.
func goodTexts() []string {
	return []string{
		"a", "worker-1", "ci@host#4711", "Deploy of the web site", " padded ", "הגיבוי הלילי", "النسخ الاحتياطي", "می\u200cخواهم", "日本語", "가", "é", "e\u0301",
		"👩\u200d💻", "❤\ufe0f", "<b>\"&\\", "a\u00a0b", "\u2801",
	}
}

func TestTextForPeopleIsVisible(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	for name, text := range badTexts() {
		b := bound{
			name:  name + " as a holder",
			err:   errOf(lock.Acquire{Locks: lock.One("a"), Holder: text}.Resolve(bounds)),
			field: "holder",
		}
		t.Run(b.name, b.check)
		b = bound{
			name:  name + " as a reason",
			err:   errOf(lock.Revoke{Name: "a", Token: 1, Reason: text}.Resolve()),
			field: "reason",
		}
		t.Run(b.name, b.check)
	}
	for _, text := range goodTexts() {
		b := bound{name: text + " as a holder", err: errOf(lock.Acquire{Locks: lock.One("a"), Holder: text}.Resolve(bounds))}
		t.Run(b.name, b.check)
		b = bound{name: text + " as a reason", err: errOf(lock.Revoke{Name: "a", Token: 1, Reason: text}.Resolve())}
		t.Run(b.name, b.check)
	}
}

func TestNumbersOfFreeFormJSONAreFinite(t *testing.T) {
	t.Parallel()
	bounds := widestBounds(t)
	for number, finite := range map[string]bool{
		"0": true, "-1.5e3": true, "1e308": true, "1.7976931348623157e308": true, "-1.7976931348623157e308": true, "1e-99999": true,
		"123456789012345678901234567890": true, strings.Repeat("9", 308): true, `"1e99999"`: true, `{"1e99999": 1}`: true,
		"1e309": false, "-1e309": false, "1e99999": false, "1E+99999": false, "1.8e308": false, strings.Repeat("9", 310): false,
		`[[{"b": [0, 1e99999]}]]`: false,
	} {
		field := map[bool]string{true: "", false: "metadata"}[finite]
		metadata := json.RawMessage(`{"a": ` + number + `}`)
		b := bound{
			name:  number + " on an acquire",
			err:   errOf(lock.Acquire{Locks: lock.One("a"), Holder: "h", Metadata: metadata}.Resolve(bounds)),
			field: field,
		}
		t.Run(b.name, b.check)
		b = bound{
			name:  number + " on a renewal",
			err:   errOf(lock.Renew{Locks: []string{"a"}, LeaseID: id(1), Metadata: metadata}.Resolve(bounds)),
			field: field,
		}
		t.Run(b.name, b.check)
		field = map[bool]string{true: "", false: "value"}[finite]
		write := lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: json.RawMessage(number)}
		b = bound{name: number + " in a fenced write", err: errOf(write.Resolve()), field: field}
		t.Run(b.name, b.check)
	}
}
