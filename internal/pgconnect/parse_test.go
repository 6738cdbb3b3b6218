package pgconnect_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
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
