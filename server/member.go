package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server/internal/openapi"
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

// A form is what an object may have.
type form []member

// forms are those of the bodies that are read thousands of times a second.
var forms = formsOf(
	reflect.TypeFor[openapi.AcquireRequest](), reflect.TypeFor[openapi.RenewRequest](), reflect.TypeFor[openapi.ReleaseRequest](),
)

func formsOf(types ...reflect.Type) map[reflect.Type]form {
	forms := make(map[reflect.Type]form, len(types))
	for _, t := range types {
		forms[t] = newForm(t)
	}
	return forms
}

func formOf(t reflect.Type) form {
	if f, ok := forms[t]; ok {
		return f
	}
	return newForm(t)
}

// newForm reads the tags of a generated struct: members that openapi.yaml does not
// require have omitempty.
func newForm(t reflect.Type) form {
	f := make(form, 0, t.NumField())
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		f = append(f, member{name: name, required: !strings.Contains(options, "omitempty"), index: i})
	}
	return f
}

// index returns where the member is whose name the string is, -1 if there is none.
func (f form) index(name jsontext.Value) int {
	bare := name[1 : len(name)-1]
	if bytes.IndexByte(bare, '\\') >= 0 {
		text, _ := unquoted(name) // it was read as a name
		bare = []byte(text)
	}
	return slices.IndexFunc(f, func(m member) bool { return m.name == string(bare) })
}

func (f form) names() string {
	names := make([]string, len(f))
	for i, m := range f {
		names[i] = m.name
	}
	return strings.Join(names, ", ")
}

// set gives the field the value that text is. Null is a value where openapi.yaml
// says so, and nowhere else.
func (m member) set(field reflect.Value, text jsontext.Value) error {
	switch into := field.Addr().Interface().(type) {
	case **json.RawMessage:
		*into = new(json.RawMessage(bytes.Clone(text)))
		return m.checkDepth(text)
	case *json.RawMessage:
		*into = json.RawMessage(bytes.Clone(text))
		return cmp.Or(m.checkNull(text), m.checkDepth(text))
	}
	if err := m.checkNull(text); err != nil {
		return err
	}
	if scan(field, text) != nil {
		return m.mistyped(field.Type())
	}
	return nil
}

// scan gives the field the value that text is, which is not null. What most bodies have
// needs no reflection.
func scan(field reflect.Value, text jsontext.Value) (err error) {
	switch into := field.Addr().Interface().(type) {
	case *string:
		*into, err = unquoted(text)
	case *uuid.UUID:
		*into, err = uuidOf(text)
	case **uuid.UUID:
		*into = new(uuid.UUID)
		**into, err = uuidOf(text)
	case **int64:
		*into = new(int64)
		**into, err = strconv.ParseInt(string(text), 10, 64)
	default:
		err = strict.Unmarshal(text, into)
	}
	return err
}

func unquoted(text jsontext.Value) (string, error) {
	if text.Kind() != '"' {
		return "", strconv.ErrSyntax
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1]), nil
	}
	b, err := jsontext.AppendUnquote(nil, text)
	return string(b), err
}

func uuidOf(text jsontext.Value) (uuid.UUID, error) {
	if text.Kind() != '"' || len(text) != uuidSize+len(`""`) {
		return uuid.Nil, strconv.ErrSyntax
	}
	return uuid.ParseBytes(text[1 : 1+uuidSize])
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
