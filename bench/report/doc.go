// Package report writes the results as tables in Markdown and plots in SVG, with the median of all
// rounds and, in parentheses, the range.
//
// Systems are compared within each round, because the machine's speed varies between rounds. The
// report shows the median of those ratios.
package report
