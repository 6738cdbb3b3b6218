package request

import (
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// integer returns a whole number. ok is false if it is missing or invalid.
func (o *object) integer(f field, bits int) (n int64, ok bool) {
	v := o.value(f)
	if v == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, bits)
	if err != nil && v.Kind() == '0' {
		n, err = strconv.ParseInt(inDigits(string(v)), 10, bits)
	}
	if err != nil {
		o.err = lock.Invalid(fieldNames[f], "must be a whole number within its bounds")
	}
	return n, err == nil
}

// maxDigits is the number of digits of the greatest int64.
const maxDigits = 19

// inDigits returns a JSON number without fraction and exponent: 30000 for 30000.0, 3e4 and 300000E-1. It returns ""
// if the number is not whole, or has more than maxDigits digits.
func inDigits(number string) string {
	number, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := number, ""
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	significant := strings.TrimRight(digits, "0")
	shift := int64(0)
	if exponent != "" {
		var err error
		if shift, err = strconv.ParseInt(exponent, 10, 32); err != nil {
			return "" // no body has so many zeros
		}
	}
	zeros := len(digits) - len(significant) - len(fraction) + int(shift)
	if zeros < 0 || len(significant)+zeros > maxDigits {
		return ""
	}
	if negative {
		significant = "-" + significant
	}
	return significant + strings.Repeat("0", zeros)
}
