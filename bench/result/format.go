package result

import (
	"math"
	"strconv"
)

// Grouped formats a number rounded, with thousands separators: 12,345.
func Grouped[T int | float64](n T) string {
	text := strconv.FormatInt(int64(math.Round(float64(n))), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
