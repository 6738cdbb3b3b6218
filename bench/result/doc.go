// Package result contains the results of runs and their file, from which reports are generated.
package result
