package client_test

import (
	"net/http"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

func TestASlotOnTheWire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slot any
		ask  func(*client.Client) error
	}{
		"0 of a revocation is sent": {0.0, func(c *client.Client) error {
			_, err := c.Revoke(t.Context(), lock.Revoke{Name: "jobs:nightly", Token: 41, Slot: new(0), Reason: "r"})
			return err
		}},
		"none of a revocation is not": {nil, func(c *client.Client) error {
			_, err := c.Revoke(t.Context(), lock.Revoke{Name: "jobs:nightly", Token: 41, Reason: "r"})
			return err
		}},
		"that of a verification is sent": {7.0, func(c *client.Client) error {
			_, err := c.VerifyToken(t.Context(), lock.Verify{Name: "jobs:nightly", Token: 41, Slot: new(7)})
			return err
		}},
		"that of a fenced write is sent": {3.0, func(c *client.Client) error {
			_, err := c.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: 41, Slot: 3, Value: []byte("1")})
			return err
		}},
		"0 of a fenced write is none": {nil, func(c *client.Client) error {
			_, err := c.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: 41, Value: []byte("1")})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r request
			if err := c.ask(over(t, heard(&r, http.StatusOK, "{}"))); err == nil {
				t.Fatal("an empty object was taken for an answer")
			}
			if r.body["slot"] != c.slot {
				t.Errorf("sent %s, want the slot %v", r.text, c.slot)
			}
		})
	}
}
