package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// etagOf returns the lock's ETag. It is weak, because answers with the same tag may differ in the time left.
func etagOf(l lock.Lock) string { return `W/"` + l.Version() + `"` }

// An ifNoneMatch is the set of versions in an If-None-Match header. The zero value is empty.
type ifNoneMatch struct {
	any      bool
	versions []string
}

// parseIfNoneMatch reads the header up to the first syntax error (RFC 9110). Unknown tags match no lock.
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

// watchUntilChanged returns the lock as soon as its version is not in the set, or unchanged when the wait is over.
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
