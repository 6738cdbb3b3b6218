package pgconnect

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout is the timeout of an attempt to connect to one host, where the URL gives none.
const connectTimeout = 5 * time.Second

// ErrMalformed is returned for a URL that cannot be read without doubt. What is wrong follows it.
var ErrMalformed = errors.New("the database URL is malformed")

// malformed returns ErrMalformed with what is wrong, which must not contain a part of the URL.
func malformed(what string) error {
	return fmt.Errorf("%w: %s; give postgres://USER:PASSWORD@HOST:5432/DATABASE", ErrMalformed, what)
}

// written are the settings that decide how PostgreSQL writes and reads values, and that every pooler keeps.
var written = map[string]string{
	"client_encoding": "UTF8", "datestyle": "ISO", "timezone": "UTC", "standard_conforming_strings": "on",
}

// Parse returns the configuration of a database URL, or of keywords and values as libpq knows them. It reads the files
// that the URL and the environment name, such as PGPASSFILE, so call it again for each connection whose password may
// have changed. Its error says what is wrong, and repeats no part of the URL.
func Parse(databaseURL string) (*pgxpool.Config, error) {
	if err := checkDelimiters(databaseURL); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, explain(err)
	}
	params := config.ConnConfig.RuntimeParams
	maps.DeleteFunc(params, func(name, _ string) bool { return written[strings.ToLower(name)] != "" })
	maps.Copy(params, written)
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return config, nil
}

// checkDelimiters returns an error unless all of the URL's delimiters are where they belong. Text that is no URL has
// none.
func checkDelimiters(databaseURL string) error {
	scheme, rest, ok := strings.Cut(databaseURL, "://")
	if !ok {
		return nil
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	_, query, _ := strings.Cut(rest, "?")
	switch {
	case strings.Contains(rest, "#"):
		return malformed("a # in it must be percent-encoded, as %23")
	case strings.Count(rest, "@") > strings.Count(authority, "@"), strings.Count(authority, "@") > 1:
		return malformed("the one @ in it must be that before the host, and before any / or ?; elsewhere, as in a password, " +
			"these must be percent-encoded, as %40, %2F and %3F")
	case scheme != "postgres" && scheme != "postgresql" && !strings.Contains(scheme, "="): // of keywords and values
		return malformed("it does not begin with postgres:// or postgresql://")
	case query == "":
		return nil
	}
	for setting := range strings.SplitSeq(query, "&") {
		if strings.Count(setting, "=") != 1 { // of a password with &, what follows would be a setting
			return malformed("what follows its ? must be NAME=VALUE, joined by &; any other = or & must be percent-encoded, " +
				"as %3D and %26")
		}
	}
	return nil
}

// faults are the parts of errors of pgx that say what is wrong with a URL, and what to say instead: the texts of pgx
// may have parts of a password.
var faults = []struct{ reason, what string }{
	{"invalid port", "its port is not a number from 1 to 65535"},
	{"could not match", "it has neither one port for all hosts nor one for each"},
	{"in IPv6 host address", "an IPv6 address must be in brackets, such as [::1]"},
	{"IPv6 host address may not be empty", "an IPv6 address must be in brackets, such as [::1]"},
	{"in URI (expected", "only a port or a path may follow an IPv6 address"},
	{"unexpected spaces", "a space in it must be percent-encoded, as %20"},
	{"percent-encoded", "a % that begins no escape must be percent-encoded, as %25"},
	{"unterminated quoted string", "a quote in it is not closed"},
	{"connection info string", "it must be KEYWORD=VALUE, separated by spaces, with values that have spaces in quotes"},
	{"keyword/value", "it begins neither with postgres:// nor with KEYWORD=VALUE, with values that have spaces in quotes"},
	{"CA ", "its sslrootcert cannot be read or is no certificate"},
	{"unable to read cert", "its sslcert cannot be read"},
	{"unable to load cert", "its sslcert and sslkey are no pair"},
	{"decrypt key", "its sslpassword does not fit its sslkey"},
}

// settings are those whose names are in the error of pgx for a bad value.
var settings = []string{
	"sslmode", "target_session_attrs", "default_query_exec_mode", "connect_timeout", "statement_cache_capacity",
	"description_cache_capacity", "pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime_jitter",
	"pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period", "pool_ping_timeout",
	"sslrootcert", "sslcertmode", "sslcert", "sslkey", "sslpassword", "servicefile", "service", "require_auth", "channel_binding",
	"min_protocol_version", "max_protocol_version",
}

// explain returns what is wrong with a URL that pgx refuses with err.
func explain(err error) error {
	_, reason, _ := strings.Cut(err.Error(), "`: ")
	for _, f := range faults {
		if strings.Contains(reason, f.reason) {
			return malformed(f.what)
		}
	}
	for _, setting := range settings {
		if strings.Contains(reason, setting) {
			return errors.New("the database URL is invalid: see its " + setting)
		}
	}
	return malformed("one of its parts is invalid")
}
