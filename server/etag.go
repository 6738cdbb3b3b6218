package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// etagOf returns the ETag of the lock. It is a weak one: two answers that have it
// may differ in the time that is left.
func etagOf(l lock.Lock) string { return `W/"` + l.Version() + `"` }

// A ifNoneMatch is what an If-None-Match lists: the versions that the caller has. The
// zero seen is none.
type ifNoneMatch struct {
	any      bool
	versions []string
}

// parseIfNoneMatch reads an If-None-Match up to where it is not what RFC 9110 makes of
// it. What is foreign, or malformed, is no version that a lock can be at.
func parseIfNoneMatch(header string) ifNoneMatch {
	if strings.TrimSpace(header) == "*" {
		return ifNoneMatch{any: true}
	}
	var s ifNoneMatch
	for rest := header; ; {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
		version, after, whole := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		if !strings.HasPrefix(rest, `"`) || !whole {
			return s
		}
		s.versions, rest = append(s.versions, version), after
	}
}

func (s ifNoneMatch) has(version string) bool { return s.any || slices.Contains(s.versions, version) }

// watchUntilChanged returns the lock as soon as it is at no version that was seen, or as it
// is when the wait is over.
func (s *Server) watchUntilChanged(ctx context.Context, in lock.Watch, seen ifNoneMatch) (lock.Lock, error) {
	if in.Wait == 0 || !seen.any && len(seen.versions) == 0 {
		return s.locks.Lock(ctx, in.Name)
	}
	over := time.Now().Add(in.Wait)
	if !seen.any {
		in.Seen = seen.versions[0]
	}
	for {
		l, err := s.locks.Watch(ctx, in)
		in.Seen, in.Wait, ctx = l.Version(), time.Until(over), access.Continued(ctx)
		if err != nil || in.Wait <= 0 || !seen.has(in.Seen) {
			return l, err
		}
	}
}
