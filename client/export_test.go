package client

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// NewHub returns a Client that only watches ends, by the events that the function returns.
func NewHub(events func(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error)) *Client {
	return &Client{hub: &hub{events: events}}
}

// Constants for tests.
const (
	MaxInFlight                       = maxInFlight
	MaxLinger           time.Duration = maxLinger
	BatchUnsupportedFor time.Duration = batchUnsupportedFor
	MaxBodySize                       = maxBodySize
)
