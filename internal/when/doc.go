// Package when reads times as people type them: durations with days, and instants as a time of day or as how long ago
// they were.
package when
