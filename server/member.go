package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// maxDepth is how many arrays and objects of free-form JSON may contain each other.
const maxDepth = 32

// uuidSize is the length of a UUID in its one canonical form.
const uuidSize = 36

// A member is one that a type of openapi.yaml has.
type member struct {
	name     string
	required bool
	index    int // of the struct's field
}

// membersOfType reads the tags of a generated struct: members that openapi.yaml
// does not require have omitempty.
func membersOfType(t reflect.Type) []member {
	members := make([]member, 0, t.NumField())
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		members = append(members, member{name: name, required: !strings.Contains(options, "omitempty"), index: i})
	}
	return members
}

func namesOf(members []member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

// set gives the field the value that text is. Null is a value where openapi.yaml
// says so, and nowhere else.
func (m member) set(field reflect.Value, text jsontext.Value) error {
	switch into := field.Addr().Interface().(type) {
	case **json.RawMessage:
		*into = new(json.RawMessage(text))
		return m.checkDepth(text)
	case *json.RawMessage:
		*into = json.RawMessage(text)
		return cmp.Or(m.checkNull(text), m.checkDepth(text))
	case *uuid.UUID, **uuid.UUID:
		if text.Kind() == '"' && len(text) != uuidSize+len(`""`) {
			return m.mistyped(field.Type())
		}
	}
	if err := m.checkNull(text); err != nil {
		return err
	}
	if strict.Unmarshal(text, field.Addr().Interface()) != nil {
		return m.mistyped(field.Type())
	}
	return nil
}

func (m member) checkNull(text jsontext.Value) error {
	if text.Kind() != 'n' {
		return nil
	}
	if m.required {
		return lock.Invalid(m.name, "is null; give it a value")
	}
	return lock.Invalid(m.name, "is null; give it a value or leave it out")
}

// checkDepth holds for JSON that readers with a small stack can read.
func (m member) checkDepth(text jsontext.Value) error {
	for d := jsontext.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.ReadToken(); err != nil {
			return nil // The end: text was read once and is known to be JSON.
		}
		if d.StackDepth() > maxDepth {
			return lock.Invalid(m.name, "is more than %d arrays and objects deep; make it flatter", maxDepth)
		}
	}
}

func (m member) mistyped(t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[uuid.UUID]():
		return lock.Invalid(m.name, "must be a UUID: a string of 32 hexadecimal digits, grouped 8-4-4-4-12")
	case t == reflect.TypeFor[time.Time]():
		return lock.Invalid(m.name, "must be an instant as in RFC 3339, such as 2026-01-02T03:04:05.678901Z")
	case t.Kind() == reflect.String:
		return lock.Invalid(m.name, "must be a string")
	case t.Kind() == reflect.Bool:
		return lock.Invalid(m.name, "must be true or false, without quotes")
	}
	return lock.Invalid(m.name, "must be a whole number within its bounds, in digits, without fraction or exponent")
}
