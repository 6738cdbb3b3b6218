package main

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestUsageErrorsAreReportedBeforeAnyRequest has no service to send requests to.
func TestUsageErrorsAreReportedBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	const id = "--lease-id=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":                        {[]string{"acquire"}, "<name>"},
		"an invalid name":                {[]string{"acquire", "a/b"}, "NAME: name has an invalid character"},
		"metadata that is not JSON":      {[]string{"acquire", "x", "--metadata={"}, "--metadata: "},
		"metadata that is not an object": {[]string{"acquire", "x", "--metadata=7"}, "--metadata: "},
		"metadata that is too long": {[]string{"acquire", "x",
			`--metadata={"a":"` + strings.Repeat("x", lock.MaxMetadataSize) + `"}`}, "4096"},
		"a zero TTL":             {[]string{"acquire", "x", "--ttl=0s"}, "--ttl is 0s"},
		"a negative TTL":         {[]string{"acquire", "x", "--ttl=-1s"}, "--ttl is -1s"},
		"a TTL above all bounds": {[]string{"acquire", "x", "--ttl=48h"}, "--ttl: ttl_ms"},
		"a negative grace":       {[]string{"acquire", "x", "--grace=-1s"}, "--grace is -1s"},
		"a negative max hold":    {[]string{"acquire", "x", "--max-hold=-1s"}, "--max-hold is -1s"},
		"a negative wait":        {[]string{"acquire", "x", "--wait=-1s"}, "or forever"},
		"an invalid wait":        {[]string{"acquire", "x", "--wait=long"}, `"long"`},
		"zero permits":           {[]string{"acquire", "x", "--permits=0"}, "--permits: "},
		"permits and shared":     {[]string{"acquire", "x", "--permits=2", "--shared"}, "can't be used together"},
		"an unprintable holder":  {[]string{"acquire", "x", "--holder=a\x1bb"}, "--holder: "},
		"a negative retry time":  {[]string{"acquire", "x", "--retry=-1s"}, "--retry is -1s"},
		"a zero lease_id": {[]string{"acquire", "x", "--lease-id=00000000-0000-0000-0000-000000000000"},
			"--lease-id: "},
		"renew without a lease_id":       {[]string{"renew", "x"}, "PADDOCK_LEASE_ID"},
		"renew with a negative TTL":      {[]string{"renew", "x", id, "--ttl=-1s"}, "--ttl is -1s"},
		"renew with an invalid name":     {[]string{"renew", "", id}, "NAME: "},
		"release without a lease_id":     {[]string{"release", "x"}, "PADDOCK_LEASE_ID"},
		"release with an invalid name":   {[]string{"release", "-x", id}, "-x"},
		"get with an invalid name":       {[]string{"get", "a b"}, "NAME: "},
		"a list as variables":            {[]string{"list", "-o", "env"}, `"table","json"`},
		"a queue as variables":           {[]string{"queue", "x", "-o", "env"}, `"table","json"`},
		"an unknown format":              {[]string{"get", "x", "-o", "yaml"}, `"table","json","env"`},
		"an unknown state":               {[]string{"list", "--state=taken"}, "--state: "},
		"a negative limit":               {[]string{"list", "--limit=-1"}, "--limit is -1"},
		"an unknown order":               {[]string{"list", "--sort=name"}, "--sort: "},
		"watch with a name and a prefix": {[]string{"watch", "x", "--prefix=y"}, "--prefix: "},
		"watch from an invalid id":       {[]string{"watch", "--from=yesterday"}, "now, oldest"},
		"watch from a negative id":       {[]string{"watch", "--from=-1"}, "now, oldest"},
		"watch for a negative time":      {[]string{"watch", "--for=-1s"}, "--for is -1s"},
		"watch with a negative count":    {[]string{"watch", "--from=oldest", "--count=-1"}, "--count is -1"},
		"revoke without a token":         {[]string{"revoke", "x", "--reason=y"}, "--token"},
		"revoke with a zero token":       {[]string{"revoke", "x", "--token=0", "--reason=y"}, "--token: "},
		"revoke without a reason":        {[]string{"revoke", "x", "--token=1"}, "--reason"},
		"revoke with an empty reason":    {[]string{"revoke", "x", "--token=1", "--reason="}, "--reason: "},
		"revoke with a negative slot":    {[]string{"revoke", "x", "--token=1", "--reason=y", "--slot=-1"}, "--slot: "},
		"revoke with an invalid instant": {[]string{"revoke", "x", "--token=1", "--reason=y", "--acquired-at=noon"}, "--acquired-at"},
		"an invalid URL":                 {[]string{"list", "--url=here"}, "--url: "},
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

func TestSecretOnTheCommandLineIsNotPrinted(t *testing.T) {
	t.Parallel()
	const id = "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	for _, args := range [][]string{
		{"renew", "x", id}, {"renew", "x", "--lease-id=" + id + "0"}, {"release", "x", "--lease=" + id}, {"release", "x",
			"-" + id},
		{"acquire", "x", "--url", "http://me:s3cret@127.0.0.1:1"}, {"list", "http://me:s3cret@127.0.0.1:1"},
		{"release", "x", "--retry=0s", "--lease-id", id, "--url=http://127.0.0.1:1"},
	} {
		code, stdout, stderr := call(t, map[string]string{"PADDOCK_LEASE_ID": "not-" + id}, args...)
		if code == exitOK || strings.Contains(stdout+stderr, id[:23]) || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestWrongBaseURLIsExplained uses a URL that is not the root of a service.
func TestWrongBaseURLIsExplained(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectFailure(exitUsage, []string{"no_route"}, "get", "x", "--url="+d.base+"/docs")
}
