package request

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestAWholeNumberIsOneInEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"30000.0": 30000, "3e4": 30000, "3E+4": 30000, "300000e-1": 30000, "0.3e5": 30000, "3.00e4": 30000, "0.0": 0, "-0.0": 0,
		"0e999999999999999999999": 0, "0e-5": 0, "-25e-1": -1, "-25e0": -25, "9223372036854775807.0": 9223372036854775807,
		"-9223372036854775808.0": -9223372036854775808, "9223372036854775808.0": -1, "1.5": -1, "1e-1": -1, "1e19": -1,
		"1e999999999": -1, "1e999999999999999999999": -1, "1e-999999999999999999999": -1, "1e9223372036854775807": -1,
		"1" + strings.Repeat("0", 5000) + "e-5000": 1, "0." + strings.Repeat("0", 5000) + "1e5001": 1,
	} {
		w, err := new(Decoder).FencedWrite("k", []byte(`{"lock": "a", "value": 1, "fencing_token": 1, "if_version": `+text+`}`))
		switch {
		case want == -1 && (err == nil || !strings.Contains(err.Error(), "whole number")):
			t.Errorf("%.40s: %v, %v", text, w.IfVersion, err)
		case want != -1 && (err != nil || *w.IfVersion != want):
			t.Errorf("%.40s: %v, want %d", text, err, want)
		}
	}
}

// FuzzInDigits compares inDigits with exact arithmetic.
func FuzzInDigits(f *testing.F) {
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
		n, err := strconv.ParseInt(inDigits(text), 10, 64)
		if (err == nil) != want || want && n != exact.Num().Int64() {
			t.Errorf("%q is %d, %v; want %v", text, n, err, exact)
		}
	})
}

// isShortNumber reports whether text is a JSON number with an exponent of at most two digits.
func isShortNumber(text string) bool {
	var d Decoder
	var o object
	body := []byte(`{"ttl_ms":` + text + `}`)
	if d.begin(body, "") != nil || d.readObject(&o, body) != nil || d.end() != nil || o.values[ttlField].Kind() != '0' ||
		string(o.values[ttlField]) != text {
		return false
	}
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	return len(strings.TrimLeft(exponent, "+-")) <= 2
}
