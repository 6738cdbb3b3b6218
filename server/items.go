package server

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

// itemsOf returns the items of a batch's body. What is wrong inside of one is told by
// the item, unless there is no telling where it ends.
func itemsOf(body []byte) ([]item, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badBody(`is empty. Send a JSON object such as {"items": [{"op": "renew", "name": "jobs:nightly", "lease_id": "…"}]}`)
	}
	l := list{jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true)), body}
	items, err := l.read()
	if at := new(jsontext.SyntacticError); errors.As(err, &at) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, notJSON(err)
	} else if err != nil {
		return nil, err
	}
	if _, err := l.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, badBody("has something after its object. Send one object and nothing else")
	}
	return items, nil
}

// shortItem is about the size of the shortest item, in bytes: a guess at how many there
// are saves copying them.
const shortItem = 80

// A list is {"items": […]} as it is read, once and without a copy.
type list struct {
	*jsontext.Decoder
	body []byte
}

func (l list) read() ([]item, error) {
	if kind := l.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return nil, badBody("is not a JSON object. Send one, in braces")
	}
	if _, err := l.ReadToken(); err != nil {
		return nil, err
	}
	var items []item
	for l.PeekKind() != '}' {
		name, err := l.ReadToken()
		switch {
		case err != nil:
			return nil, err
		case name.String() != "items":
			return nil, lock.Invalid(name.String(), "is not a member of this body, which may have items")
		case items != nil:
			return nil, lock.Invalid("items", "is there twice; keep one of them")
		}
		if items, err = l.readItems(); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 {
		return nil, lock.Invalid("items", "are missing; give 1 to %d of them, in a list", lock.MaxBatch)
	}
	_, err := l.ReadToken()
	return items, err
}

func (l list) readItems() ([]item, error) {
	if kind := l.PeekKind(); kind != '[' && kind != jsontext.KindInvalid {
		return nil, lock.Invalid("items", "must be in a list, in brackets")
	}
	if _, err := l.ReadToken(); err != nil {
		return nil, err
	}
	items := make([]item, 0, min(len(l.body)/shortItem+1, lock.MaxBatch))
	for l.PeekKind() != ']' {
		if err := lock.CheckBatch(len(items) + 1); err != nil {
			return nil, err
		}
		items = append(items, item{})
		if err := l.readItem(&items[len(items)-1]); err != nil {
			return nil, err
		}
	}
	_, err := l.ReadToken()
	return items, err
}

// readItem reads the next item. It returns an error if there is no reading on.
func (l list) readItem(into *item) error {
	from := l.InputOffset()
	if kind := l.PeekKind(); kind != '{' {
		into.foreign = true
		return l.SkipValue()
	}
	if _, err := l.ReadToken(); err != nil {
		return err
	}
	for l.PeekKind() != '}' {
		text, err := l.ReadValue()
		if err != nil {
			return err
		}
		name := nameOf(text) // now, since the text is gone when more is read
		value, err := l.ReadValue()
		if err != nil {
			return err
		}
		into.take(name, value)
	}
	_, err := l.ReadToken()
	into.size = len(bytes.TrimLeft(l.body[from:l.InputOffset()], ", \t\r\n"))
	return err
}
