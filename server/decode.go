package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

// decode returns the request's body as a T, a struct generated from
// openapi.yaml. It takes what the schema describes and nothing else; its errors
// are *lock.Error and name the member at fault. Bounds are the domain's to check.
func decode[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	readers := requestOf(r).readers
	with := readers.Get().(*reader)
	defer readers.Put(with)
	body, err := readBody(&with.body, w, r, MaxBodySize)
	if err != nil {
		return *new(T), err
	}
	return parse[T](with, body)
}

// A reader is memory to read a body with, and then the next. Nothing that was read shares it.
type reader struct {
	body    bytes.Buffer
	decoder jsontext.Decoder
	members []jsontext.Value
}

func parse[T any](with *reader, body []byte) (T, error) {
	var into T
	object := reflect.ValueOf(&into).Elem()
	known := formOf(object.Type())
	texts, err := known.read(with, body)
	if err != nil {
		return into, err
	}
	for i, m := range known {
		switch text := texts[i]; {
		case text == nil && m.required:
			return into, lock.Invalid(m.name, "is missing; add it to the body")
		case text != nil:
			if err := m.set(object.Field(m.index), text); err != nil {
				return into, err
			}
		}
	}
	return into, nil
}

// read returns the text of each member of the object that body is, nil for those that
// were not sent. They share the memory of body and of the reader.
func (f form) read(with *reader, body []byte) ([]jsontext.Value, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badBody(`is empty. Send a JSON object, such as {"holder": "worker-1"} to acquire`)
	}
	d := &with.decoder
	d.Reset(bytes.NewBuffer(body))
	if kind := d.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return nil, badBody("is not a JSON object. Send one, in braces")
	}
	with.members = append(with.members[:0], make([]jsontext.Value, len(f))...)
	unknown, err := f.readMembers(d, body, with.members)
	if err != nil {
		return nil, notJSON(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, badBody("has something after its object. Send one object and nothing else")
	}
	if len(unknown) > 0 {
		return nil, lock.Invalid(slices.Min(unknown), "is not a member of this body, which may have %s", f.names())
	}
	return with.members, nil
}

// readMembers puts the text of each member into its place, and returns the names of those
// that have none.
func (f form) readMembers(d *jsontext.Decoder, body []byte, places []jsontext.Value) (unknown []string, err error) {
	_, err = d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var name, text jsontext.Value
		if name, err = d.ReadValue(); err != nil {
			break
		}
		at := f.index(name)
		if at < 0 {
			key, _ := unquoted(name) // it was read as a name, so it is a string
			unknown = append(unknown, key)
		}
		text, err = d.ReadValue()
		if end := int(d.InputOffset()); at >= 0 {
			places[at] = body[end-len(text) : end : end]
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return unknown, err
}

// notJSON says where the body stops being JSON, or which name it has twice.
func notJSON(err error) error {
	var at *jsontext.SyntacticError
	switch {
	case !errors.As(err, &at):
		return badBody("is cut short. Send a whole JSON object")
	case !errors.Is(err, jsontext.ErrDuplicateName):
		return badBody("is not valid JSON at byte %d. Send one JSON object, in UTF-8", at.ByteOffset)
	}
	path := slices.Collect(at.JSONPointer.Tokens())
	if len(path) > 1 {
		return lock.Invalid(path[0], "has the name %q twice in one object; keep one of them", path[len(path)-1])
	}
	return lock.Invalid(at.JSONPointer.LastToken(), "is there twice; keep one of them")
}
