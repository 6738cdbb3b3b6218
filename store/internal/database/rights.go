package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

var sqlRights = Statement(files, "rights")

// ErrReadOnly is returned for a database in which no transaction may write.
var ErrReadOnly = errors.New("the database accepts no writes: it is a standby, or default_transaction_read_only is set " +
	"for the role or the database")

// A RightsError means that the service's role lacks rights on the tables.
type RightsError struct {
	Role   string
	Schema string
	Remedy []string // statements for the owner of the tables
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("the role %s lacks rights in the database; run as the owner of the schema %s: %s",
		e.Role, e.Schema, strings.Join(e.Remedy, " "))
}

// CheckRights returns a *RightsError if the role lacks a right that the service needs, and ErrReadOnly if it may not
// write at present.
func (d *DB) CheckRights(ctx context.Context) error {
	var readOnly bool
	missing := &RightsError{Schema: d.Schema.String()}
	err := d.Rest.QueryRow(ctx, sqlRights.In(d.Schema)).Scan(&missing.Role, &readOnly, &missing.Remedy)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("checking the rights of the role: %w", err)
	case len(missing.Remedy) > 0:
		return missing
	case readOnly:
		return ErrReadOnly
	}
	return nil
}
