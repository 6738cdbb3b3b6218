// Package pgversion checks that a PostgreSQL server has a version, and its database an encoding, that Paddock supports.
package pgversion

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// The major versions of PostgreSQL that Paddock is tested on.
const (
	Oldest = 14
	Newest = 18
)

// A Number is the server_version_num of a server: 150018 for 15.18, 90624 for 9.6.24.
type Number int

// Major returns the major version.
func (n Number) Major() int { return int(n) / 10_000 }

// String returns the version as PostgreSQL writes it.
func (n Number) String() string {
	if n.Major() < 10 {
		return fmt.Sprintf("%d.%d.%d", n.Major(), int(n)/100%100, int(n)%100)
	}
	return fmt.Sprintf("%d.%d", n.Major(), int(n)%10_000)
}

// Check returns a *TooOldError for a version before Oldest. It accepts every newer one, since a new major version
// rarely breaks anything that Paddock uses; see Tested.
func (n Number) Check() error {
	if n.Major() < Oldest {
		return &TooOldError{Version: n}
	}
	return nil
}

// Tested reports whether the major version is one that Paddock is tested on.
func (n Number) Tested() bool { return n.Major() >= Oldest && n.Major() <= Newest }

// A TooOldError means that the server is older than Oldest.
type TooOldError struct {
	Version Number
}

func (e *TooOldError) Error() string {
	return fmt.Sprintf("The database server is PostgreSQL %v, and Paddock needs %d or newer (tested up to %d). "+
		"Upgrade the server, or give the URL of a newer one.", e.Version, Oldest, Newest)
}

// needed is the encoding of a database that has room for every holder, reason and metadata.
const needed = "UTF8"

// An EncodingError means that the database has another encoding than UTF8.
type EncodingError struct {
	Encoding string
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("The encoding of the database is %s, and Paddock needs %s. Give the URL of a database with it: "+
		"create database paddock encoding '%s' template template0. If PostgreSQL refuses that because of the locale, add locale 'C'.",
		e.Encoding, needed, needed)
}

// Require asks the server for its version and the encoding of the database, in one round trip, and returns the version.
// The error is a *TooOldError if Check refuses the version, and an *EncodingError for another encoding than UTF8. Behind a
// pooler it asks the server, not the pooler.
func Require(ctx context.Context, conn *pgconn.PgConn) (Number, error) {
	results, err := conn.Exec(ctx, "show server_version_num; show server_encoding").ReadAll()
	if err != nil {
		return 0, fmt.Errorf("reading the version of the database server: %w", err)
	}
	if len(results) != 2 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 || len(results[1].Rows) != 1 || len(results[1].Rows[0]) != 1 {
		return 0, errors.New("reading the version of the database server: it returned no server_version_num and server_encoding")
	}
	n, err := strconv.Atoi(string(results[0].Rows[0][0]))
	if err != nil {
		return 0, fmt.Errorf("reading the version of the database server: %w", err)
	}
	if err := Number(n).Check(); err != nil {
		return Number(n), err
	}
	if encoding := string(results[1].Rows[0][0]); encoding != needed {
		return Number(n), &EncodingError{Encoding: encoding}
	}
	return Number(n), nil
}
