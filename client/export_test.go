package client

import "time"

// Numbers that tests count with.
const (
	FlightsAtOnce                  = flightsAtOnce
	LongestGathering time.Duration = longestGathering
	SinglyFor        time.Duration = singlyFor
	FullAt                         = fullAt
)
