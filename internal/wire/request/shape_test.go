package request

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/api"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// TestShapesAreThoseOfTheDocument compares the shapes with the types that are generated from openapi.yaml.
func TestShapesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape shape
		model reflect.Type
	}{
		"acquire":         {acquireBody, reflect.TypeFor[api.AcquireRequest]()},
		"renew":           {renewBody, reflect.TypeFor[api.RenewRequest]()},
		"release":         {releaseBody, reflect.TypeFor[api.ReleaseRequest]()},
		"revoke":          {revokeBody, reflect.TypeFor[api.RevokeRequest]()},
		"verify":          {verifyBody, reflect.TypeFor[api.VerifyRequest]()},
		"report":          {reportBody, reflect.TypeFor[api.ReportRequest]()},
		"fenced write":    {fencedWriteBody, reflect.TypeFor[api.FencedWrite]()},
		"open session":    {openSessionBody, reflect.TypeFor[api.OpenSessionRequest]()},
		"renew session":   {renewSessionBody, reflect.TypeFor[api.RenewSessionRequest]()},
		"close session":   {closeSessionBody, reflect.TypeFor[api.CloseSessionRequest]()},
		"revoke session":  {revokeSessionBody, reflect.TypeFor[api.RevokeSessionRequest]()},
		"acquire a set":   {acquireSetBody, reflect.TypeFor[api.AcquireSetRequest]()},
		"renew a set":     {renewSetBody, reflect.TypeFor[api.RenewSetRequest]()},
		"release a set":   {releaseSetBody, reflect.TypeFor[api.ReleaseSetRequest]()},
		"lock of a set":   {setMember, reflect.TypeFor[api.SetMember]()},
		"item to acquire": {acquireItem, reflect.TypeFor[api.BatchAcquire]()},
		"item to renew":   {renewItem, reflect.TypeFor[api.BatchRenew]()},
		"item to release": {releaseItem, reflect.TypeFor[api.BatchRelease]()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			may, must := membersOf(c.model)
			if diff := cmp.Diff(may, setNames(c.shape.allowed)); diff != "" {
				t.Errorf("members that it may have (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(must, setNames(c.shape.required)); diff != "" {
				t.Errorf("members that it must have (-want +got):\n%s", diff)
			}
		})
	}
}

func setNames(s fieldSet) map[string]bool {
	names := map[string]bool{}
	for _, name := range s.names() {
		names[name] = true
	}
	return names
}

// membersOf reads the tags of a generated struct: members that are not required have omitempty.
func membersOf(model reflect.Type) (may, must map[string]bool) {
	may, must = map[string]bool{}, map[string]bool{}
	for i := range model.NumField() {
		name, options, _ := strings.Cut(model.Field(i).Tag.Get("json"), ",")
		may[name] = true
		if !strings.Contains(options, "omitempty") {
			must[name] = true
		}
	}
	return may, must
}

// TestMembersHaveTheTypesOfTheDocument decodes each member of each type from a value of every type that JSON has.
func TestMembersHaveTheTypesOfTheDocument(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"text": `"x"`, "uuid": `"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"`, "instant": `"2026-01-02T03:04:05Z"`, "number": `7`, "boolean": `true`, "list": `[]`,
		"locks": `[{"name": "x"}, {"name": "y"}]`, "names": `["x", "y"]`,
	}
	for _, c := range []struct {
		model  reflect.Type
		decode func(d *Decoder, body []byte) error
	}{
		{reflect.TypeFor[api.AcquireRequest](), func(d *Decoder, body []byte) error { return errorOf(d.Acquire("a", body)) }},
		{reflect.TypeFor[api.RenewRequest](), func(d *Decoder, body []byte) error { return errorOf(d.Renew("a", body)) }},
		{reflect.TypeFor[api.ReleaseRequest](), func(d *Decoder, body []byte) error { return errorOf(d.Release("a", body)) }},
		{reflect.TypeFor[api.RevokeRequest](), func(d *Decoder, body []byte) error { return errorOf(d.Revoke("a", body)) }},
		{reflect.TypeFor[api.VerifyRequest](), func(d *Decoder, body []byte) error { return errorOf(d.Verify("a", body)) }},
		{reflect.TypeFor[api.ReportRequest](), func(d *Decoder, body []byte) error { return errorOf(d.ReportStale("a", body)) }},
		{reflect.TypeFor[api.FencedWrite](), func(d *Decoder, body []byte) error { return errorOf(d.FencedWrite("a", body)) }},
		{reflect.TypeFor[api.OpenSessionRequest](), func(d *Decoder, body []byte) error { return errorOf(d.OpenSession("", body)) }},
		{reflect.TypeFor[api.RenewSessionRequest](), func(d *Decoder, body []byte) error { return errorOf(d.RenewSession("", body)) }},
		{reflect.TypeFor[api.CloseSessionRequest](), func(d *Decoder, body []byte) error { return errorOf(d.CloseSession("", body)) }},
		{reflect.TypeFor[api.RevokeSessionRequest](), func(d *Decoder, body []byte) error {
			return errorOf(d.RevokeSession("7bb9f2a32ab6969f", body))
		}},
		{reflect.TypeFor[api.AcquireSetRequest](), func(d *Decoder, body []byte) error { return errorOf(d.AcquireSet("", body)) }},
		{reflect.TypeFor[api.RenewSetRequest](), func(d *Decoder, body []byte) error { return errorOf(d.RenewSet("", body)) }},
		{reflect.TypeFor[api.ReleaseSetRequest](), func(d *Decoder, body []byte) error { return errorOf(d.ReleaseSet("", body)) }},
		{reflect.TypeFor[api.SetMember](), func(d *Decoder, lock []byte) error {
			return errorOf(d.AcquireSet("", []byte(`{"holder": "h", "locks": [{"name": "a"}, `+string(lock)+`]}`)))
		}},
		{reflect.TypeFor[api.BatchAcquire](), decodeItem}, {reflect.TypeFor[api.BatchRenew](), decodeItem}, {reflect.TypeFor[api.BatchRelease](), decodeItem},
	} {
		good := map[string]string{}
		for i := range c.model.NumField() {
			name, _, _ := strings.Cut(c.model.Field(i).Tag.Get("json"), ",")
			good[name] = values[kindsOf(c.model.Field(i).Type)[0]]
			if name == "op" {
				good[name] = `"` + strings.ToLower(strings.TrimPrefix(c.model.Name(), "Batch")) + `"`
			}
		}
		if err := c.decode(new(Decoder), objectWith(good, "", "")); err != nil {
			t.Fatalf("%v: %v", c.model, err)
		}
		for i := range c.model.NumField() {
			name, _, _ := strings.Cut(c.model.Field(i).Tag.Get("json"), ",")
			for kind, value := range values {
				err := c.decode(new(Decoder), objectWith(good, name, value))
				if want := slices.Contains(kindsOf(c.model.Field(i).Type), kind) && (name != "op" || value == good[name]); (err == nil) != want {
					t.Errorf("%v: %s as %s: %v", c.model, name, kind, err)
				}
			}
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func decodeItem(d *Decoder, body []byte) error {
	_, results, err := d.Batch([]byte(`{"items":[` + string(body) + `]}`))
	if err != nil {
		return err
	}
	return results[0].Err
}

// objectWith returns the object with these members, one of them with another value.
func objectWith(members map[string]string, name, value string) []byte {
	var list []string
	for n, v := range members {
		if n == name {
			v = value
		}
		list = append(list, `"`+n+`":`+v)
	}
	return []byte("{" + strings.Join(list, ",") + "}")
}

// kindsOf returns the kinds of values that a field of a generated type may have, the narrowest first; nil for any.
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
