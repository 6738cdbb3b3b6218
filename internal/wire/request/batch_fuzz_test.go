package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

func FuzzBatch(f *testing.F) {
	const id = `"lease_id": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"`
	for _, seed := range []string{
		`{"items": [{"op": "acquire", "name": "a", "holder": "h"}, {"op": "renew", "name": "b", ` + id + `}, {"op": "release", "name": "c", ` + id + `}]}`,
		`{"items": [{"op": "acquire", "name": "a:b", "holder": "h", "mode": "permit", "capacity": 3, "ttl_ms": 100, "metadata": {"x": [null, 1e400]}}]}`,
		`{"items": [1, null, [], {}, "x", {"op": 1}, {"op": "renew", "op": "release"}, {"op": "acquire", "name": "a", "holder": "h", "wait_ms": 1}]}`,
		`{"items": []}`, `{"items": [1], "items": [1]}`, `{"items": [{"\u006fp": "renew"}]}`, `{"items": [1]} x`, `{"items": [[[[`, `{"items": [1,]}`,
		`{}`, `[]`, `null`, ``, `{`, "{\"items\": [\"\xff\"]}", `{"items": [{"op": "acquire", "name": "a", "name": "b"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		commands, results, err := Batch(body)
		if checkInvalid(t, err); err != nil {
			return
		}
		var lenient struct{ Items []json.RawMessage }
		if err := json.Unmarshal(body, &lenient); err != nil || len(commands) == 0 || len(commands) > paddock.MaxBatch ||
			len(commands) != len(lenient.Items) || len(results) != len(commands) {
			t.Fatalf("of %q made %d items: %d, %v", body, len(commands), len(lenient.Items), err)
		}
		for i, text := range lenient.Items {
			if err := results[i].Err; err == nil {
				checkCommand(t, text, commands[i])
			} else if !errors.Is(err, lock.Code(api.CodeBodyTooLarge)) {
				checkInvalid(t, err)
			}
		}
	})
}

// required has the member that an item of each kind needs beside op and name.
var required = map[string]struct{ member, command string }{
	"acquire": {"holder", "lock.Acquire"}, "renew": {"lease_id", "lock.Renew"}, "release": {"lease_id", "lock.Release"},
}

// checkCommand checks that a command is what its text says, for the lock that its text names.
func checkCommand(t *testing.T, text []byte, command lock.Command) {
	t.Helper()
	var members map[string]json.RawMessage
	var op, name string
	err := json.Unmarshal(text, &members)
	if err = errors.Join(err, json.Unmarshal(members["op"], &op), json.Unmarshal(members["name"], &name)); err != nil {
		t.Fatalf("accepted %q: %v", text, err)
	}
	want := required[op]
	if fmt.Sprintf("%T", command) != want.command || command.Names()[0] != name || paddock.ValidateBatchItem(command) != nil {
		t.Errorf("%q became %T for %q", text, command, command.Names())
	}
	if members[want.member] == nil {
		t.Errorf("accepted %q without %s", text, want.member)
	}
	for name, value := range members {
		if string(value) == "null" {
			t.Errorf("accepted %q, whose %s is null", text, name)
		}
	}
}
