package lock

// MaxSearched is maxSearched, for tests.
const MaxSearched = maxSearched
