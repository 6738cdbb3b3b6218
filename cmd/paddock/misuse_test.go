package main

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestMistakesAreSaidBeforeAnythingIsSent has no service to send it to.
func TestMistakesAreSaidBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	const id = "--lease-id=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":                        {[]string{"acquire"}, "<name>"},
		"a name that is none":            {[]string{"acquire", "a/b"}, "NAME: name has an invalid character"},
		"metadata that is no JSON":       {[]string{"acquire", "x", "--metadata={"}, "--metadata: "},
		"metadata that is no object":     {[]string{"acquire", "x", "--metadata=7"}, "--metadata: "},
		"metadata that is too long":      {[]string{"acquire", "x", `--metadata={"a":"` + strings.Repeat("x", lock.MaxMetadataSize) + `"}`}, "4096"},
		"a TTL of nothing":               {[]string{"acquire", "x", "--ttl=0s"}, "--ttl is 0s"},
		"a TTL below zero":               {[]string{"acquire", "x", "--ttl=-1s"}, "--ttl is -1s"},
		"a TTL beyond all bounds":        {[]string{"acquire", "x", "--ttl=48h"}, "--ttl: ttl_ms"},
		"a grace below zero":             {[]string{"acquire", "x", "--grace=-1s"}, "--grace: "},
		"a greatest hold below zero":     {[]string{"acquire", "x", "--max-hold=-1s"}, "--max-hold is -1s"},
		"a wait below zero":              {[]string{"acquire", "x", "--wait=-1s"}, "or forever"},
		"a wait that is no time":         {[]string{"acquire", "x", "--wait=long"}, `"long"`},
		"no permits":                     {[]string{"acquire", "x", "--permits=0"}, "--permits: "},
		"permits to share":               {[]string{"acquire", "x", "--permits=2", "--shared"}, "can't be used together"},
		"a holder of nothing printable":  {[]string{"acquire", "x", "--holder=a\x1bb"}, "--holder: "},
		"to retry for less than once":    {[]string{"acquire", "x", "--retry=-1s"}, "--retry is -1s"},
		"a lease_id of zeros":            {[]string{"acquire", "x", "--lease-id=00000000-0000-0000-0000-000000000000"}, "--lease-id: "},
		"to renew which lease":           {[]string{"renew", "x"}, "PADDOCK_LEASE_ID"},
		"to renew for less than no time": {[]string{"renew", "x", id, "--ttl=-1s"}, "--ttl is -1s"},
		"to renew a name that is none":   {[]string{"renew", "", id}, "NAME: "},
		"to release which lease":         {[]string{"release", "x"}, "PADDOCK_LEASE_ID"},
		"to release a name that is none": {[]string{"release", "-x", id}, "-x"},
		"to get a name that is none":     {[]string{"get", "a b"}, "NAME: "},
		"a list as variables":            {[]string{"list", "-o", "env"}, `"table","json"`},
		"a queue as variables":           {[]string{"queue", "x", "-o", "env"}, `"table","json"`},
		"a form that is none":            {[]string{"get", "x", "-o", "yaml"}, `"table","json","env"`},
		"a state that is none":           {[]string{"list", "--state=taken"}, "--state: "},
		"fewer locks than none":          {[]string{"list", "--limit=-1"}, "--limit is -1"},
		"to watch a name and a prefix":   {[]string{"watch", "x", "--prefix=y"}, "--prefix: "},
		"to watch from nowhere":          {[]string{"watch", "--from=yesterday"}, "now, oldest"},
		"to watch from before all":       {[]string{"watch", "--from=-1"}, "now, oldest"},
		"to watch for less than no time": {[]string{"watch", "--for=-1s"}, "--for is -1s"},
		"to watch less than nothing":     {[]string{"watch", "--from=oldest", "--count=-1"}, "--count is -1"},
		"to revoke which token":          {[]string{"revoke", "x", "--reason=y"}, "--token"},
		"to revoke a token that is none": {[]string{"revoke", "x", "--token=0", "--reason=y"}, "--token: "},
		"to revoke without a reason":     {[]string{"revoke", "x", "--token=1"}, "--reason"},
		"to revoke for no reason":        {[]string{"revoke", "x", "--token=1", "--reason="}, "--reason: "},
		"to revoke at an odd slot":       {[]string{"revoke", "x", "--token=1", "--reason=y", "--slot=-1"}, "--slot: "},
		"to revoke at an odd instant":    {[]string{"revoke", "x", "--token=1", "--reason=y", "--acquired-at=noon"}, "--acquired-at"},
		"a URL that is none":             {[]string{"list", "--url=here"}, "--url: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, map[string]string{"PADDOCK_URL": "http://127.0.0.1:1"}, c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit code %d, want %d and %q in:\n%s%s", code, exitUsage, c.want, stdout, stderr)
			}
		})
	}
}

func TestASecretOnTheCommandLineIsNotRepeated(t *testing.T) {
	t.Parallel()
	const id = "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	for _, args := range [][]string{
		{"renew", "x", id}, {"renew", "x", "--lease-id=" + id + "0"}, {"release", "x", "--lease=" + id}, {"release", "x", "-" + id},
		{"acquire", "x", "--url", "http://me:s3cret@127.0.0.1:1"}, {"list", "http://me:s3cret@127.0.0.1:1"},
		{"release", "x", "--retry=0s", "--lease-id", id, "--url=http://127.0.0.1:1"},
	} {
		code, stdout, stderr := call(t, map[string]string{"PADDOCK_LEASE_ID": "not-" + id}, args...)
		if code == exitOK || strings.Contains(stdout+stderr, id[:23]) || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestABaseURLThatLeadsElsewhereIsExplained asks what is no Paddock, or not its root.
func TestABaseURLThatLeadsElsewhereIsExplained(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.refuses(exitUsage, []string{"no_route"}, "get", "x", "--url="+d.base+"/docs")
}
