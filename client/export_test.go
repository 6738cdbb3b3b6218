package client

import "time"

// Numbers that tests count with.
const (
	MaxInFlight                       = maxInFlight
	MaxLinger           time.Duration = maxLinger
	BatchUnsupportedFor time.Duration = batchUnsupportedFor
	MaxBodySize                       = maxBodySize
)
