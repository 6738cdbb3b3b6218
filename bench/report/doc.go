// Package report tells of what was measured: tables in Markdown, and plots as SVG, with the
// median of all rounds and, in parentheses, the least and the greatest.
//
// A comparison is made in each round for itself, since the machine is not the same from one to
// the next; then the median of those is taken.
package report
