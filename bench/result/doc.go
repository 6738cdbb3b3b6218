// Package result is what runs came to: one Run each, kept in a file, from which the report can
// be made again.
package result
