package wire

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// ErrNotTheAnswer means that the answer belongs to another request, or has another form than its answer.
var ErrNotTheAnswer = errors.New("the answer is not one to this request")

// Parse decodes an answer, and converts it to the domain with to. It returns ErrNotTheAnswer if matches reports that
// the answer belongs to another request.
func Parse[Model, Value any](text []byte, to func(Model) Value, matches func(Model) bool) (v Value, err error) {
	var m Model
	if err := json.Unmarshal(text, &m); err != nil {
		return v, err
	}
	if !matches(m) {
		return v, ErrNotTheAnswer
	}
	return to(m), nil
}

// ParseLease decodes the answer to c, an acquire or a renewal. sent is when the request was sent.
func ParseLease(text []byte, c lock.Command, sent time.Time) (lock.Grant, error) {
	names := c.Names()
	if len(names) > 1 {
		return parseSet(text, c, names, sent)
	}
	var l api.Lease
	if err := json.Unmarshal(text, &l); err != nil {
		return lock.Grant{}, err
	}
	return grantTo(c, names[0], &l, sent)
}

// ParseResults decodes the answer to a batch of these items. It fails if text is another answer. For an item that was
// refused, the Err is what refused returns.
func ParseResults(
	text []byte, items []lock.Command, sent time.Time, refused func(p api.Problem, status int) error,
) ([]paddock.Result, error) {
	answer := api.BatchResults{Results: make([]api.BatchResult, 0, len(items))}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(items) {
		return nil, ErrNotTheAnswer
	}
	results := make([]paddock.Result, len(items))
	for i, r := range answer.Results {
		switch {
		case r.Status/100 == 2:
			grant, err := grantTo(items[i], items[i].Names()[0], r.Lease, sent)
			if err != nil {
				return nil, err
			}
			_, acquires := items[i].(lock.Acquire)
			grant.Replayed = acquires && r.Status == 200
			results[i].Grant = grant
		case r.Problem != nil && r.Problem.Code != "":
			results[i].Err = refused(*r.Problem, r.Status)
		default:
			return nil, ErrNotTheAnswer
		}
	}
	return results, nil
}

// grantTo returns the grant that answers c, which is about one lock. l is its lease, nil if the answer has none.
func grantTo(c lock.Command, name string, l *api.Lease, sent time.Time) (g lock.Grant, err error) {
	if l != nil {
		g = toLease(*l, sent)
	}
	if !isAnswer(c, g.Lease) || l != nil && g.Name != name {
		return lock.Grant{}, ErrNotTheAnswer
	}
	return g, nil
}

// isAnswer reports whether l is a possible answer to c, whatever its name.
func isAnswer(c lock.Command, l lock.Lease) bool {
	switch c := c.(type) {
	case lock.Acquire:
		return l.ID == c.LeaseID && l.Token > 0 && l.Session == c.SessionID.Ref()
	case lock.Renew:
		return l.ID == c.LeaseID && l.Token > 0
	}
	return l.ID == lock.LeaseID{}
}
