package pgfence

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/lock"
)

// A Reporter records refused tokens. A *client.Client is one.
type Reporter interface {
	ReportStale(context.Context, lock.ReportStale) (recorded bool, err error)
}

// Report tells the lock service that the fence has refused a stale token, if refused is such an error of Tx; otherwise
// it does nothing. The history of the lock then shows who wrote after their lease had ended, how late, and who held
// the lock at that time. name is the lock's name.
//
//	err := pgfence.Tx(ctx, pool, "accounts", token, write)
//	if _, failed := pgfence.Report(ctx, locks, "jobs:billing", "accounts", err); failed != nil {
//		log.Print(failed)
//	}
//
// The work is over by then, so ctx may have ended: Report takes its values, not its end. recorded is false if the
// limits of paddock.StaleReports allow no further event.
func Report(ctx context.Context, locks Reporter, name, resource string, refused error) (recorded bool, err error) {
	e := new(lock.Error)
	if !errors.As(refused, &e) || e.Code != lock.ErrStaleToken {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	where := "pgfence " + resource
	if runes := []rune(where); len(runes) > lock.MaxWhereLength {
		where = string(runes[:lock.MaxWhereLength])
	}
	return locks.ReportStale(ctx, lock.ReportStale{Name: name, Token: e.Token, Where: where})
}
