package lock

// MaxVictims is maxVictims, for tests.
const MaxVictims = maxVictims
