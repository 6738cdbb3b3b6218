package server

import (
	"bytes"
	"errors"
	"io"
	"maps"
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
	body, err := readBody(w, r)
	if err != nil {
		return *new(T), err
	}
	return parse[T](body)
}

func parse[T any](body []byte) (T, error) {
	var into T
	members, err := membersOf(body)
	if err != nil {
		return into, err
	}
	object := reflect.ValueOf(&into).Elem()
	known := membersOfType(object.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.ContainsFunc(known, func(m member) bool { return m.name == name }) {
			return into, lock.Invalid(name, "is not a member of this body, which may have %s", namesOf(known))
		}
	}
	for _, m := range known {
		text, sent := members[m.name]
		if !sent && m.required {
			return into, lock.Invalid(m.name, "is missing; add it to the body")
		}
		if !sent {
			continue
		}
		if err := m.set(object.Field(m.index), text); err != nil {
			return into, err
		}
	}
	return into, nil
}

// membersOf returns the members of the object that body is, each as it was sent.
func membersOf(body []byte) (map[string]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badBody(`is empty. Send a JSON object, such as {"holder": "worker-1"} to acquire`)
	}
	if kind := d.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		return nil, badBody("is not a JSON object. Send one, in braces")
	}
	members := map[string]jsontext.Value{}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		key := name.String()
		var text jsontext.Value
		text, err = d.ReadValue()
		members[key] = text.Clone()
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if err != nil {
		return nil, notJSON(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, badBody("has something after its object. Send one object and nothing else")
	}
	return members, nil
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
