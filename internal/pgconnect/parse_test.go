package pgconnect_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgconnect"
)

// TestThePasswordFileIsReadEachTime stands for PGPASSFILE, which a test cannot set beside others.
func TestThePasswordFileIsReadEachTime(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pgpass")
	for _, password := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte("db.example:5432:paddock:app:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := pgconnect.Parse("postgres://app@db.example/paddock?passfile=" + url.QueryEscape(file))
		if err != nil || config.ConnConfig.Password != password {
			t.Errorf("%+v, %v; want the password %s", config, err, password)
		}
	}
}

func TestSettingsOfTheURLDoNotChangeHowValuesAreWritten(t *testing.T) {
	t.Parallel()
	config, err := pgconnect.Parse("postgres://db.example/paddock?DateStyle=German&application_name=mine")
	if err != nil {
		t.Fatal(err)
	}
	params := config.ConnConfig.RuntimeParams
	if params["DateStyle"] != "" || params["datestyle"] != "ISO" || params["application_name"] != "mine" {
		t.Errorf("the parameters are %v", params)
	}
}

func TestSpecialCharactersMustBePercentEncoded(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{
		"postgres://u:a@b@h/d", "postgres://u:a/b@h/d", "postgres://u:a?b@h/d", "postgres://u:a#b@h/d", "postgres://u:a%b@h/d",
		"postgres://u@h/d?password=a&b", "postgres://u@h/d?password=a@b", "postgres://u@h/d?password=a=b",
	} {
		if _, err := pgconnect.Parse(refused); !errors.Is(err, pgconnect.ErrMalformed) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	for _, good := range []string{
		"postgres://u:a%40%2F%23%3F%25b@h/d", "postgres://u:a:b@h/d", "postgres://u@h1:1,h2:2/d?sslmode=disable",
		"postgres:///d?host=/run/postgresql", "host=h user=u password='a@b/c#d'", "postgres://u:p@[::1]:5432/d?",
	} {
		if _, err := pgconnect.Parse(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// TestAnErrorSaysWhatIsWrongWithTheURL, and no part of it.
func TestAnErrorSaysWhatIsWrongWithTheURL(t *testing.T) {
	t.Parallel()
	for databaseURL, want := range map[string]string{
		"postgres://me:s3cret@db:port/d":                                     "its port is not a number",
		"postgres://me:s3cret@db:70000/d":                                    "its port is not a number from 1 to 65535",
		"postgres://me:s3cret@h1,h2,h3/d?port=1,2":                           "one port for all hosts",
		"postgres://me:s3cret@[::1/d":                                        "in brackets",
		"postgres://me:s3cret@[]/d":                                          "in brackets",
		"postgres://me:s3cret@[::1]x/d":                                      "may follow an IPv6 address",
		"postgres://me:s3cret@a db/d":                                        "as %20",
		"postgres://me:s3%cret@db/d":                                         "as %25",
		"postgres://me:s3cret@db/d%zz":                                       "as %25",
		"postgres://me:s3#cret@db/d":                                         "as %23",
		"postgres://me:s3@cret@db/d":                                         "as %40",
		"postgres://me:s3/cret@db/d":                                         "%2F",
		"postgres://me:s3cret@db/d?sslmode":                                  "must be NAME=VALUE",
		"mysql://me:s3cret@db/d":                                             "does not begin with postgres://",
		"s3cret:5432/d":                                                      "begins neither with postgres:// nor",
		"host=db password='s3cret":                                           "quote in it is not closed",
		"host=db password=s3cret port=x":                                     "its port is not a number",
		"host=db password=s3 cret x=y":                                       "in quotes",
		"postgres://me:s3cret@db/d?sslmode=maybe":                            "see its sslmode",
		"postgres://me:s3cret@db/d?sslcertmode=maybe":                        "see its sslcertmode",
		"postgres://me:s3cret@db/d?require_auth=maybe":                       "see its require_auth",
		"postgres://me:s3cret@db/d?channel_binding=maybe":                    "see its channel_binding",
		"postgres://me:s3cret@db/d?connect_timeout=x":                        "see its connect_timeout",
		"postgres://me:s3cret@db/d?pool_min_conns=x":                         "see its pool_min_conns",
		"postgres://me:s3cret@db/d?service=none&servicefile=/nothing":        "see its service",
		"postgres://me:s3cret@db/d?sslrootcert=/nothing&sslmode=verify-full": "its sslrootcert",
		"postgres://me:s3cret@db/d?sslcert=/nothing":                         "see its sslcert",
		"postgres://me:s3cret@db/d?min_protocol_version=x":                   "see its min_protocol_version",
	} {
		_, err := pgconnect.Parse(databaseURL)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v, want %q", databaseURL, err, want)
		}
	}
}
