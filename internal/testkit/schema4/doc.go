// Package schema4 grants locks as replicas of the last release with schema 4 did, with the text of their statements.
// Tests of migrations use it in place of that release's binary, which cannot be built from a clone without history.
// Only tests may import it.
package schema4
