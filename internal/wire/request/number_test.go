package request

import (
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestAWholeNumberIsOneInEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"30000.0": 30000, "3e4": 30000, "3E+4": 30000, "300000e-1": 30000, "0.3e5": 30000, "3.00e4": 30000, "0.0": 0, "-0.0": 0,
		"0e-5": 0, "-25e-1": -1, "-25e0": -25, "9223372036854775807.0": 9223372036854775807,
		"-9223372036854775808.0": -9223372036854775808, "9223372036854775808.0": -1, "1.5": -1, "1e-1": -1, "1e19": -1,
		"1e999999999": -1, "1e999999999999999999999": -1, "1e-999999999999999999999": -1, "1e9223372036854775807": -1,
		"1" + strings.Repeat("0", 50) + "e-50": 1, "0." + strings.Repeat("0", 50) + "1e51": 1, "1." + strings.Repeat("0", 5000): -1,
		"1." + strings.Repeat("0", 60) + "1": -1, strings.Repeat("9", 5000) + "e-5000": -1,
	} {
		w, err := Read[FencedWrite]("k", []byte(`{"lock": "a", "value": 1, "fencing_token": 1, "if_version": `+text+`}`))
		switch {
		case want == -1 && (err == nil || !strings.Contains(err.Error(), "whole number")):
			t.Errorf("%.40s: %v, %v", text, w.IfVersion, err)
		case want != -1 && (err != nil || *w.IfVersion != want):
			t.Errorf("%.40s: %v, want %d", text, err, want)
		}
	}
}

// FuzzParseWhole compares parseWhole with exact arithmetic.
func FuzzParseWhole(f *testing.F) {
	for _, seed := range []string{"0", "-1.50", "3e4", "300000E-1", "0.001e3", "12e+17", "9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isShortNumber(text) {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no number", text)
		}
		want := exact.IsInt() && exact.Num().IsInt64()
		n, ok := parseWhole([]byte(text))
		if ok != want || want && n != exact.Num().Int64() {
			t.Errorf("%q is %d, %v; want %v", text, n, ok, exact)
		}
	})
}

// isShortNumber reports whether text is a JSON number with an exponent of at most two digits.
func isShortNumber(text string) bool {
	number := jsontext.Value(text)
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	return len(text) <= maxNumberLength && number.IsValid() && number.Kind() == '0' && strings.TrimSpace(text) == text && len(strings.TrimLeft(exponent, "+-")) <= 2
}
