package client

import (
	"bytes"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A reader takes an answer in. It keeps the first error and reads nothing more
// after it. What it hands out of the text is good until it reads on.
type reader struct {
	*jsontext.Decoder
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// object reads an object. It has the value of each member be read by each.
func (r *reader) object(each func(member []byte)) {
	for r.open('{'); r.goesOn('}'); {
		each(r.value())
	}
}

// list reads a list. It has each element be read by each.
func (r *reader) list(each func()) {
	for r.open('['); r.goesOn(']'); {
		each()
	}
}

func (r *reader) open(kind jsontext.Kind) {
	if t := r.token(); r.err == nil && t.Kind() != kind {
		r.err = errNotTheAnswer
	}
}

// goesOn is whether there is more before the end of that kind, which it reads.
func (r *reader) goesOn(end jsontext.Kind) bool {
	if r.err == nil && r.PeekKind() == end {
		r.token()
		return false
	}
	return r.err == nil
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

func (r *reader) ms() time.Duration { return fromMs(r.number()) }

func (r *reader) instant() (t time.Time) {
	v := r.value()
	if r.err == nil {
		r.err = t.UnmarshalJSON(v)
	}
	return t
}

// string reads a string. It returns usual if that is what it says.
func (r *reader) string(usual string) string {
	v := r.value()
	if n := len(v); n == len(usual)+2 && string(v[1:n-1]) == usual && bytes.IndexByte(v, '\\') < 0 {
		return usual
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
