package client

import "time"

// Constants for tests.
const (
	MaxInFlight                       = maxInFlight
	MaxLinger           time.Duration = maxLinger
	BatchUnsupportedFor time.Duration = batchUnsupportedFor
	MaxBodySize                       = maxBodySize
)
