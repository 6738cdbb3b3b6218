package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// ErrNotTheAnswer means that the answer belongs to another request, or has another form than its answer.
var ErrNotTheAnswer = errors.New("the answer is not one to this request")

// Parse decodes an answer and converts it to the domain. It returns ErrNotTheAnswer if matches reports that the answer
// belongs to another request.
func Parse[Model interface{ Domain() Value }, Value any](text []byte, matches func(Model) bool) (v Value, err error) {
	var m Model
	if err := json.Unmarshal(text, &m); err != nil {
		return v, err
	}
	if !matches(m) {
		return v, ErrNotTheAnswer
	}
	return m.Domain(), nil
}

// ParseLease decodes the answer to c. The Until of the grant is sent plus the remaining time. sent is when the request
// was sent, so that Until is never too late.
func ParseLease(text []byte, c lock.Command, sent time.Time) (lock.Grant, error) {
	r := newReader(text)
	grant := r.lease(c, sent)
	r.end()
	if r.err == nil && !isAnswer(c, grant) {
		r.err = ErrNotTheAnswer
	}
	return grant, r.err
}

// ParseResults decodes the answer to a batch of these items. It fails if text is another answer. For an item that was
// refused, the Err is what refused returns.
func ParseResults(
	text []byte, items []lock.Command, sent time.Time, refused func(p Problem, status int) error,
) ([]lock.Result, error) {
	r := newReader(text)
	var results []lock.Result
	r.object(func(member []byte) {
		if string(member) != `"results"` {
			r.skip()
			return
		}
		results = make([]lock.Result, 0, len(items))
		r.list(func() {
			if len(results) == len(items) {
				r.fail(ErrNotTheAnswer)
				return
			}
			results = append(results, r.result(items[len(results)], sent, refused))
		})
	})
	r.end()
	if r.err == nil && len(results) != len(items) {
		r.err = ErrNotTheAnswer
	}
	return results, r.err
}

// A reader decodes an answer. It keeps the first error and reads nothing after it. A jsontext.Value that it returns is
// valid until the next read.
type reader struct {
	*jsontext.Decoder
	err error
}

func newReader(text []byte) reader {
	return reader{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
}

// result reads the result of an item.
func (r *reader) result(item lock.Command, sent time.Time, refused func(Problem, int) error) (out lock.Result) {
	status, problem := 0, (*Problem)(nil) // a pointer, because most items have no problem
	r.object(func(member []byte) {
		switch string(member) {
		case `"status"`:
			status = int(r.number())
		case `"lease"`:
			out.Grant = r.lease(item, sent)
		case `"problem"`:
			problem = new(Problem)
			if v := r.value(); r.err == nil {
				r.err = json.Unmarshal(v, problem)
			}
		default:
			r.skip()
		}
	})
	switch {
	case status/100 != 2 && (problem == nil || problem.Code == ""):
		r.fail(ErrNotTheAnswer)
		return lock.Result{}
	case status/100 != 2:
		return lock.Result{Err: refused(*problem, status)}
	case !isAnswer(item, out.Grant):
		r.fail(ErrNotTheAnswer)
	}
	_, acquires := item.(lock.Acquire)
	out.Grant.Replayed = acquires && status == 200
	return out
}

// lease reads the lease that the command was granted.
func (r *reader) lease(c lock.Command, sent time.Time) (g lock.Grant) {
	var name, holder string // expected, so that text need not allocate them
	switch c := c.(type) {
	case lock.Acquire:
		name, holder = c.Name, c.Holder
	case lock.Renew:
		name = c.Name
	}
	r.object(func(member []byte) {
		switch string(member) {
		case `"name"`:
			g.Name = r.text(name)
		case `"lease_id"`:
			g.ID = r.id()
		case `"fencing_token"`:
			g.Token = lock.Token(r.number())
		case `"slot"`:
			g.Slot = int(r.number())
		case `"mode"`:
			g.Mode = lock.ModeOf(r.text(lock.Exclusive.String()))
		case `"holder"`:
			g.Holder = r.text(holder)
		case `"ttl_ms"`:
			g.TTL = r.duration()
		case `"grace_ms"`:
			g.Grace = r.duration()
		case `"max_hold_ms"`:
			g.MaxHold = r.duration()
		case `"acquired_at"`:
			g.AcquiredAt = r.instant()
		case `"expires_at"`:
			g.ExpiresAt = r.instant()
		case `"expires_in_ms"`:
			g.Until = sent.Add(r.duration())
		case `"metadata"`:
			g.Metadata = json.RawMessage(r.value().Clone())
		default:
			r.skip()
		}
	})
	return g
}

// isAnswer reports whether g is a possible answer to c.
func isAnswer(c lock.Command, g lock.Grant) bool {
	switch c := c.(type) {
	case lock.Acquire:
		return g.Name == c.Name && g.ID == c.LeaseID && g.Token > 0
	case lock.Renew:
		return g.Name == c.Name && g.ID == c.LeaseID && g.Token > 0
	}
	return g.ID == lock.LeaseID{}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// object reads an object. It calls each with the quoted name of each member that is not null; each must read the value.
func (r *reader) object(each func(member []byte)) {
	for r.open('{'); r.more('}'); {
		member := r.value()
		if r.err == nil && r.PeekKind() == 'n' {
			r.skip()
			continue
		}
		each(member)
	}
}

// list reads a list. It calls each for each element; each must read the element.
func (r *reader) list(each func()) {
	for r.open('['); r.more(']'); {
		each()
	}
}

func (r *reader) open(kind jsontext.Kind) {
	if t := r.token(); r.err == nil && t.Kind() != kind {
		r.err = ErrNotTheAnswer
	}
}

// more reports whether another element follows. If not, it reads the closing token of kind end.
func (r *reader) more(end jsontext.Kind) bool {
	if r.err == nil && r.PeekKind() == end {
		r.token()
		return false
	}
	return r.err == nil
}

// end fails if anything follows.
func (r *reader) end() {
	if _, err := r.ReadToken(); r.err == nil && !errors.Is(err, io.EOF) {
		r.err = errors.New("something follows the answer")
	}
}

func (r *reader) token() (t jsontext.Token) {
	if r.err == nil {
		t, r.err = r.ReadToken()
	}
	return t
}

// value returns the text of the next value.
func (r *reader) value() (v jsontext.Value) {
	if r.err == nil {
		v, r.err = r.ReadValue()
	}
	return v
}

func (r *reader) skip() { r.value() }

func (r *reader) number() int64 {
	n, err := strconv.ParseInt(string(r.value()), 10, 64)
	r.fail(err)
	return n
}

func (r *reader) duration() time.Duration { return DurationOf(r.number()) }

func (r *reader) instant() (t time.Time) {
	v := r.value()
	if r.err == nil {
		r.err = t.UnmarshalJSON(v)
	}
	return t
}

// text reads a string. If it equals expected, text returns expected without an allocation.
func (r *reader) text(expected string) string {
	v := r.value()
	if n := len(v); n == len(expected)+2 && string(v[1:n-1]) == expected && bytes.IndexByte(v, '\\') < 0 {
		return expected
	}
	var buf [256]byte
	text, err := jsontext.AppendUnquote(buf[:0], v)
	r.fail(err)
	return string(text)
}

func (r *reader) id() lock.LeaseID {
	v := r.value()
	id, err := uuid.ParseBytes(bytes.Trim(v, `"`))
	r.fail(err)
	return lock.LeaseID(id)
}
