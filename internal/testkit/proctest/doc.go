// Package proctest runs programs in tests: it starts them, signals them, waits for what they print and for their end,
// and kills them when the test ends. It also reads their metrics.
package proctest
