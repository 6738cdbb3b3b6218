package request

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

// bodies are the models of openapi.yaml that are part of a body, and how each is decoded.
var bodies = []struct {
	model  reflect.Type
	decode func(body []byte) (any, error)
}{
	{reflect.TypeFor[api.AcquireRequest](), decoder("a", Read[Acquire])},
	{reflect.TypeFor[api.RenewRequest](), decoder("a", Read[Renew])},
	{reflect.TypeFor[api.ReleaseRequest](), decoder("a", Read[Release])},
	{reflect.TypeFor[api.RevokeRequest](), decoder("a", Read[Revoke])},
	{reflect.TypeFor[api.VerifyRequest](), decoder("", Read[Verify])},
	{reflect.TypeFor[api.ReportRequest](), decoder("", Read[ReportStale])},
	{reflect.TypeFor[api.FencedWrite](), decoder("a", Read[FencedWrite])},
	{reflect.TypeFor[api.OpenSessionRequest](), decoder("", Read[OpenSession])},
	{reflect.TypeFor[api.RenewSessionRequest](), decoder("", Read[RenewSession])},
	{reflect.TypeFor[api.CloseSessionRequest](), decoder("", Read[CloseSession])},
	{reflect.TypeFor[api.RevokeSessionRequest](), decoder("7bb9f2a32ab6969f", Read[RevokeSession])},
	{reflect.TypeFor[api.AcquireSetRequest](), decoder("", Read[AcquireSet])},
	{reflect.TypeFor[api.RenewSetRequest](), decoder("", Read[RenewSet])},
	{reflect.TypeFor[api.ReleaseSetRequest](), decoder("", Read[ReleaseSet])},
	{reflect.TypeFor[api.FreezeRequest](), decoder("a:", Read[Freeze])},
	{reflect.TypeFor[api.RuleRequest](), decoder("a:", Read[Rule])},
	{reflect.TypeFor[api.SetMember](), decodeMember},
	{reflect.TypeFor[api.BatchAcquire](), decodeItem},
	{reflect.TypeFor[api.BatchRenew](), decodeItem},
	{reflect.TypeFor[api.BatchRelease](), decodeItem},
}

func decoder[Command any](name string, decode func(string, []byte) (Command, error)) func([]byte) (any, error) {
	return func(body []byte) (any, error) { return decode(name, body) }
}

func decodeItem(body []byte) (any, error) {
	commands, results, err := Batch([]byte(`{"items":[` + string(body) + `]}`))
	if err != nil {
		return nil, err
	}
	return commands[0], results[0].Err
}

func decodeMember(member []byte) (any, error) {
	return Read[AcquireSet]("", []byte(`{"holder": "h", "locks": [{"name": "a"}, `+string(member)+`]}`))
}

// valueOf and otherOf have two values of each kind.
var (
	valueOf = map[string]string{
		"text": `"x"`, "uuid": `"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"`, "instant": `"2026-01-02T03:04:05Z"`, "number": `700`, "boolean": `true`,
		"list": `[]`, "locks": `[{"name": "x"}, {"name": "y"}]`, "names": `["x", "y"]`, "null": `null`,
	}
	otherOf = map[string]string{
		"text": `"y"`, "uuid": `"7c1b7e5a-3d0f-4a55-9d27-6d0a2b1c9e44"`, "number": `701`, "list": `{}`, "locks": `[{"name": "x"}]`, "names": `["x"]`,
	}
)

// goodBody returns the names of the members of a model, and a valid value of each.
func goodBody(model reflect.Type) map[string]string {
	good := map[string]string{}
	for i := range model.NumField() {
		name, _, _ := strings.Cut(model.Field(i).Tag.Get("json"), ",")
		if good[name] = valueOf[kindsOf(model.Field(i).Type)[0]]; name == "op" {
			good[name] = `"` + strings.ToLower(strings.TrimPrefix(model.Name(), "Batch")) + `"`
		} else if name == "on_expiry" {
			good[name] = `"hold"`
		}
	}
	return good
}

// bodyWith returns a body with these members, one of them with another value. Without a value it is left out.
func bodyWith(members map[string]string, name, value string) []byte {
	list := []string{}
	for n, v := range members {
		if n == name {
			v = value
		}
		if v != "" {
			list = append(list, `"`+n+`":`+v)
		}
	}
	return []byte("{" + strings.Join(list, ",") + "}")
}

// TestMembersHaveTheTypesOfTheDocument decodes each member of each body from a value of every type that JSON has.
func TestMembersHaveTheTypesOfTheDocument(t *testing.T) {
	t.Parallel()
	for _, b := range bodies {
		good := goodBody(b.model)
		if _, err := b.decode(bodyWith(good, "", "")); err != nil {
			t.Fatalf("%v: %v", b.model, err)
		}
		for i := range b.model.NumField() {
			name, _, _ := strings.Cut(b.model.Field(i).Tag.Get("json"), ",")
			for kind, value := range valueOf {
				_, err := b.decode(bodyWith(good, name, value))
				want := slices.Contains(kindsOf(b.model.Field(i).Type), kind) && (name != "op" && name != "on_expiry" || value == good[name])
				if (err == nil) != (want || kind == "null" && name == "value") {
					t.Errorf("%v: %s as %s: %v", b.model, name, kind, err)
				}
			}
		}
	}
}

// TestEveryMemberReachesTheCommand changes one member after the other of each body: an optional one is left out.
func TestEveryMemberReachesTheCommand(t *testing.T) {
	t.Parallel()
	for _, b := range bodies {
		good := goodBody(b.model)
		whole, err := b.decode(bodyWith(good, "", ""))
		if err != nil {
			t.Fatalf("%v: %v", b.model, err)
		}
		for i := range b.model.NumField() {
			name, options, _ := strings.Cut(b.model.Field(i).Tag.Get("json"), ",")
			without, err := b.decode(bodyWith(good, name, ""))
			if required := options == ""; required {
				if e := (*lock.Error)(nil); !errors.As(err, &e) || !strings.HasSuffix(e.Field, name) {
					t.Errorf("%v without %s: %v", b.model, name, err)
				}
				without, err = b.decode(bodyWith(good, name, otherOf[kindsOf(b.model.Field(i).Type)[0]]))
			}
			if name != "op" && (err != nil || reflect.DeepEqual(without, whole)) {
				t.Errorf("%v: %s has no effect: %v", b.model, name, err)
			}
		}
	}
}

// kindsOf returns the kinds of values that a field of a generated type may have, the narrowest first.
func kindsOf(t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[uuid.UUID]():
		return []string{"uuid"}
	case t.Name() == "Time":
		return []string{"instant"}
	case t.Kind() == reflect.String:
		return []string{"text", "uuid", "instant"}
	case t.Kind() == reflect.Bool:
		return []string{"boolean"}
	case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[api.SetMember]():
		return []string{"locks"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return []string{"names"}
	case t.Kind() == reflect.Slice:
		return []string{"list", "text", "uuid", "instant", "number", "boolean", "locks", "names"}
	}
	return []string{"number"}
}
