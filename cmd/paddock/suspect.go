package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/lock"
)

// explainSuspect returns the refusal of an acquire of the locks that a suspect lease is in the way of: to wait for its end
// is no use. It returns nil if none is, and if the locks cannot be read: then the text of the refusal has to do.
func explainSuspect(ctx context.Context, locks paddock.Service, names []string, refusal error) error {
	var held *lock.Error
	if !errors.As(refusal, &held) || held.Code != lock.ErrHeld || !held.Suspect {
		return nil
	}
	if len(held.Blocked) > 0 {
		names = nil
		for _, b := range held.Blocked {
			names = append(names, b.Name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var texts, revocations []string
	for _, name := range names {
		l, err := locks.Lock(ctx, name)
		if err != nil {
			return nil
		}
		for _, h := range l.Leases {
			if !h.Suspect {
				continue
			}
			texts = append(texts, fmt.Sprintf("%s holds %s and has not renewed it in time, so it is suspect since %s",
				printable.Text(h.Holder), name, local(h.ExpiresAt.Add(h.Grace))))
			revocations = append(revocations, fmt.Sprintf("    paddock revoke %s --token %d --reason …", name, h.Token))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return &failure{exitNotAcquired, fmt.Errorf(notAcquired+"%s. Only the holder, who renews or releases it, or an operator ends that: "+
		"look at the work, and then run\n%s", strings.Join(texts, "; "), strings.Join(revocations, "\n"))}
}
