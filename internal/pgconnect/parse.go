package pgconnect

import (
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout is the timeout of an attempt to connect to one host, where the URL gives none.
const connectTimeout = 5 * time.Second

// ErrMalformed is returned for a URL that cannot be read without doubt.
var ErrMalformed = errors.New("the database URL is malformed; give postgres://USER:PASSWORD@HOST:5432/DATABASE, " +
	"with special characters of the password percent-encoded")

// written are the settings that decide how PostgreSQL writes and reads values, and that every pooler keeps.
var written = map[string]string{
	"client_encoding": "UTF8", "datestyle": "ISO", "timezone": "UTC", "standard_conforming_strings": "on",
}

// Parse returns the configuration of a database URL, or of keywords and values as libpq knows them. It reads the files
// that the URL and the environment name, such as PGPASSFILE, so call it again for each connection whose password may have
// changed. Its error is ErrMalformed, or says what is wrong without repeating a part of the URL.
func Parse(databaseURL string) (*pgxpool.Config, error) {
	if !unambiguous(databaseURL) {
		return nil, ErrMalformed
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

// unambiguous reports whether all of the URL's delimiters are where they belong. Text that is no URL has none.
func unambiguous(databaseURL string) bool {
	_, rest, ok := strings.Cut(databaseURL, "://")
	if !ok {
		return true
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	_, query, _ := strings.Cut(rest, "?")
	switch {
	case strings.Contains(rest, "#"), strings.Count(rest, "@") > strings.Count(authority, "@"), strings.Count(authority, "@") > 1:
		return false
	case query == "":
		return true
	}
	for setting := range strings.SplitSeq(query, "&") {
		if strings.Count(setting, "=") != 1 { // of a password with &, what follows would be a setting
			return false
		}
	}
	return true
}

// explain returns what is wrong with a URL, for the settings that have no secrets and few values. For others it returns
// ErrMalformed: the text of err may have parts of a password.
func explain(err error) error {
	text := err.Error()
	for _, setting := range []string{
		"sslmode", "target_session_attrs", "default_query_exec_mode", "connect_timeout", "statement_cache_capacity",
		"pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period",
		"sslrootcert", "sslcert", "sslkey", "servicefile",
	} {
		if _, reason, ok := strings.Cut(text, "`: "); ok && strings.Contains(reason, setting) {
			return errors.New("the database URL is invalid: see its " + setting)
		}
	}
	return ErrMalformed
}
