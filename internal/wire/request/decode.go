package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// MaxBodySize is the greatest size of the body of a single call, and of an item of a batch, in bytes.
	MaxBodySize = 16 << 10
	// maxDepth is the maximum nesting of arrays and objects in free-form JSON.
	maxDepth = 32
	// readDepth is the nesting beyond which the library reads no further.
	readDepth = 10_000
	// uuidLength is the length of a UUID in its canonical form.
	uuidLength = 36
	// maxNumberLength is the greatest length of a number with a fraction or an exponent, in bytes.
	maxNumberLength = 64
	// byteOrderMark is what some editors put before a text in UTF-8.
	byteOrderMark = "\ufeff"
)

// The options of the library. By default it refuses names that differ in case, names that are there twice, and text
// that is not UTF-8. But it takes null for a missing member.
var (
	unmarshalers = json.JoinUnmarshalers(
		json.UnmarshalFromFunc(whole[int64]), json.UnmarshalFromFunc(whole[int]), json.UnmarshalFromFunc(id),
		json.UnmarshalFromFunc(freeForm),
	)
	strict       = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(unmarshalers))
	strictNoNull = json.JoinOptions(strict,
		json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(noNull), unmarshalers)))
)

// Read decodes a body, such as Acquire, to its command. name is what the path of the call names: the lock, the
// resource or the session.
func Read[Body interface {
	command(name string) (Command, error)
}, Command any](name string, body []byte) (c Command, err error) {
	m, err := decode[Body](body)
	if err != nil {
		return c, err
	}
	return m.command(name)
}

// CheckEmpty checks the body of a call that has none. It may be an object without members.
func CheckEmpty(body []byte) error {
	_, err := decode[struct{}](body)
	return err
}

// decode decodes a body, which must be one object with the members of the model and nothing else.
func decode[Model any](body []byte) (m Model, err error) {
	options := strict
	if bytes.Contains(body, []byte("null")) {
		options = strictNoNull
	}
	if err := json.Unmarshal(body, &m, options); err != nil {
		return m, refusal(body, err, reflect.TypeFor[Model]())
	}
	return m, checkRequired(body, reflect.ValueOf(&m).Elem())
}

// checkRequired returns an error if the body lacks a required member. Only a zero field can be missing.
func checkRequired(body []byte, model reflect.Value) error {
	var present map[string]jsontext.Value // of the body, once needed
	for i := range model.NumField() {
		if field := model.Field(i); field.Kind() == reflect.Pointer || !field.IsZero() {
			continue
		}
		name, required := memberOf(model.Type().Field(i))
		if !required {
			continue
		}
		if present == nil {
			_ = json.Unmarshal(body, &present) // it is valid
		}
		if _, ok := present[name]; !ok {
			return lock.Invalid(name, "is missing; add it")
		}
	}
	return nil
}

// memberOf returns the name of the member that a field of a model stands for. It is required if the field is no pointer
// and has no omitempty.
func memberOf(field reflect.StructField) (name string, required bool) {
	name, optional := strings.CutSuffix(field.Tag.Get("json"), ",omitempty")
	return name, !optional && field.Type.Kind() != reflect.Pointer
}

// A fault is what is wrong with a value. It continues a sentence that begins with the name of the value.
type fault string

// Error returns the text.
func (f fault) Error() string { return string(f) }

// noNull refuses null, except for the value of a write.
func noNull(d *jsontext.Decoder, into any) error {
	switch _, freeForm := into.(*api.Metadata); {
	case d.PeekKind() != 'n' || d.StackPointer() == "/value":
		return errors.ErrUnsupported
	case freeForm || reflect.TypeOf(into).Elem().Kind() == reflect.Pointer:
		return fault("is null; give it a value or leave it out")
	}
	return fault("is null; give it a value")
}

// whole decodes a whole number in any form, such as 30000, 30000.0 and 3e4.
func whole[Int int | int64](d *jsontext.Decoder, into *Int) error {
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	if text.Kind() != '0' {
		return fault("must be a whole number, without quotes")
	}
	n, ok := parseWhole(text)
	*into = Int(n)
	if !ok || int64(*into) != n {
		return fault(fmt.Sprintf("is %.40s; give a whole number of at most 64 bits", text))
	}
	return nil
}

// parseWhole returns the value of a JSON number, if it is whole and has at most 64 bits. A number in another form than
// digits may have maxNumberLength characters.
func parseWhole(text []byte) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil || len(text) > maxNumberLength {
		return n, err == nil
	}
	f, _, err := big.ParseFloat(string(text), 10, 4*maxNumberLength, big.ToNearestEven) // a digit has less than 4 bits
	if err != nil {
		return 0, false
	}
	n, accuracy := f.Int64()
	return n, accuracy == big.Exact
}

// id decodes a UUID in its canonical form.
func id(d *jsontext.Decoder, into *uuid.UUID) error {
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	if text.Kind() == '"' && len(text) == uuidLength+len(`""`) {
		if *into, err = uuid.ParseBytes(text[1 : 1+uuidLength]); err == nil {
			return nil
		}
	}
	return fault("must be a UUID: a string of 32 hexadecimal digits, grouped 8-4-4-4-12")
}

// freeForm copies a value that may be any JSON up to maxDepth levels deep.
func freeForm(d *jsontext.Decoder, into *api.Value) error {
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	*into = bytes.Clone(text)
	tokens := jsontext.NewDecoder(bytes.NewReader(text))
	for err == nil {
		if _, err = tokens.ReadToken(); tokens.StackDepth() > maxDepth {
			return fault(fmt.Sprintf("is more than %d arrays and objects deep; make it flatter", maxDepth))
		}
	}
	return nil
}

// refusal returns the error for a body of the model that the library has refused. Malformed JSON comes first, wherever
// it is.
func refusal(body []byte, err error, model reflect.Type) error {
	if syntax := json.Unmarshal(body, new(jsontext.Value), jsontext.AllowDuplicateNames(true)); syntax != nil {
		err = syntax
	}
	var value *json.SemanticError
	var text *jsontext.SyntacticError
	switch {
	case errors.As(err, &value) && value.JSONPointer == "":
		return InvalidBody("is not a JSON object. Send one, in braces")
	case value != nil:
		return invalid(value.JSONPointer, faultOf(value))
	case errors.As(err, &text) && errors.Is(err, jsontext.ErrDuplicateName):
		return invalid(text.JSONPointer, "is there twice; keep one of them")
	case len(bytes.TrimSpace(body)) == 0:
		return InvalidBody("is empty. Send a JSON object such as %s", outlineOf(model))
	case text == nil || errors.Is(err, io.ErrUnexpectedEOF):
		return InvalidBody("ends too early, after %d bytes. Send a whole JSON object", len(body))
	case jsontext.Value(body[:text.ByteOffset]).IsValid():
		return InvalidBody("has something after its object. Send one object and nothing else")
	}
	return malformed(body, text.ByteOffset)
}

// outlineOf returns an object with the required members of the model, without their values.
func outlineOf(model reflect.Type) string {
	var members []string
	for i := range model.NumField() {
		if name, required := memberOf(model.Field(i)); required {
			members = append(members, strconv.Quote(name)+": ...")
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// malformed returns the error for a body that the library cannot read beyond this byte.
func malformed(body []byte, at int64) error {
	r, size := utf8.DecodeRune(body[at:])
	switch {
	case bytes.HasPrefix(body[at:], []byte(byteOrderMark)):
		return InvalidBody("has a byte order mark at byte %d. Remove it", at)
	case r == utf8.RuneError && size == 1:
		return InvalidBody("is not UTF-8 at byte %d. Send it in UTF-8", at)
	case isSurrogate(body[at:]):
		return InvalidBody("has half of a surrogate pair at byte %d. Send both halves, or the character itself", at)
	case isTooDeep(body):
		return InvalidBody("is nested too deep at byte %d. Make it flatter: %d arrays and objects at most", at, maxDepth)
	}
	return InvalidBody("is not valid JSON at byte %d. Send one JSON object, in UTF-8", at)
}

// isSurrogate reports whether the text begins with the escape of one half of a surrogate pair.
func isSurrogate(text []byte) bool {
	if len(text) < len(`\ud800`) || !bytes.HasPrefix(text, []byte(`\u`)) {
		return false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return err == nil && utf16.IsSurrogate(rune(unit))
}

// isTooDeep reports whether the library reads no further because of the nesting.
func isTooDeep(body []byte) bool {
	tokens := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := tokens.ReadToken(); err != nil {
			return tokens.StackDepth() >= readDepth
		}
	}
}

// faultOf returns what is wrong with a value that the library has refused.
func faultOf(e *json.SemanticError) string {
	var known fault
	switch {
	case errors.As(e, &known):
		return string(known)
	case errors.Is(e, json.ErrUnknownName):
		return unknownIn(e.GoType)
	}
	switch e.GoType.Kind() {
	case reflect.String:
		return "must be a string"
	case reflect.Bool:
		return "must be true or false, without quotes"
	case reflect.Slice:
		return "must be in a list, in brackets"
	}
	if e.GoType == reflect.TypeFor[api.SetMember]() {
		return `must be an object such as {"name": "jobs:nightly"}`
	}
	return "must be an instant as in RFC 3339, such as 2026-01-02T03:04:05.678901Z"
}

// unknownIn returns what is wrong with a member that the model does not have.
func unknownIn(model reflect.Type) string {
	var names []string
	for i := range model.NumField() {
		name, _, _ := strings.Cut(model.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	if names == nil {
		return "is not known: this call has no body; leave it out"
	}
	return "is not a member of this object, which may have " + strings.Join(names, ", ")
}

// invalid is [lock.Invalid] for the value at this place.
func invalid(at jsontext.Pointer, what string) error {
	name := strings.Join(slices.Collect(at.Tokens()), "/")
	return &lock.Error{Code: lock.ErrInvalid, Field: string(at[1:]), Detail: name + " " + what + "."}
}

// InvalidBody returns an error about a body as a whole. The format continues a sentence that begins with "The body",
// without a full stop.
func InvalidBody(format string, args ...any) error {
	return &lock.Error{Code: lock.ErrInvalid, Detail: "The body " + fmt.Sprintf(format, args...) + "."}
}

// TooLarge returns the error about a body or an item with more bytes than its limit.
func TooLarge(what string, limit int64) error {
	detail := fmt.Sprintf("The %s has more than %d bytes. Send less.", what, limit)
	return &lock.Error{Code: lock.Code(api.CodeBodyTooLarge), Detail: detail}
}
