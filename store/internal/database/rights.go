package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/lock"
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

// Refusal returns the answer to a probe of readiness. The statements are no secret: they have the names of the role and
// of Paddock's own tables, which are in its documentation, and no right of anybody else.
func (e *RightsError) Refusal() error {
	text := e.Error() // it ends with a statement, and so without a full stop
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: personRetryAfter, Cause: e, Detail: strings.ToUpper(text[:1]) + text[1:]}
}

// CheckRights returns a *RightsError if the role lacks a right that the service needs, and ErrReadOnly if it may not
// write at present. absent names the tables, sequences, functions and triggers that the schema lacks, for CheckSchema.
func (d *DB) CheckRights(ctx context.Context) (absent []string, err error) {
	var readOnly bool
	missing := &RightsError{Schema: d.Schema.String()}
	err = d.Rest.QueryRow(ctx, sqlRights.In(d.Schema)).Scan(&missing.Role, &readOnly, &missing.Remedy, &absent)
	switch {
	case err != nil:
		return nil, fmt.Errorf("checking the rights of the role: %w", err)
	case len(missing.Remedy) > 0:
		return nil, missing
	case readOnly:
		return nil, ErrReadOnly
	}
	return absent, nil
}
