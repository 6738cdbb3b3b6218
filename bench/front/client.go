package front

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/paddock-lock/paddock/bench/lean"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// An httpStore is a lease.Store behind a front, over a connection for one caller. It does not escape
// names and ids, which the bench chooses accordingly.
type httpStore struct {
	conn *lean.Conn
	out  []byte
}

func (r *httpStore) Acquire(ctx context.Context, name string, wait bool) (lease.Grant, error) {
	r.out = append(append(r.out[:0], `{"name":"`...), name...)
	r.out = append(strconv.AppendBool(append(r.out, `","wait":`...), wait), '}')
	status, answer, err := r.conn.Post(ctx, "/acquire", r.out)
	switch {
	case err != nil:
		return lease.Grant{}, err
	case status == http.StatusConflict:
		return lease.Grant{}, system.ErrHeld
	case status != http.StatusCreated:
		return lease.Grant{}, fmt.Errorf("acquire %s: %d %s", name, status, answer)
	}
	token, err := strconv.ParseInt(string(lean.Field(answer, "token")), 10, 64)
	return lease.Grant{ID: string(lean.Field(answer, "id")), Token: token}, err
}

func (r *httpStore) Renew(ctx context.Context, name, id string) error {
	return r.call(ctx, "/renew", name, id)
}

func (r *httpStore) Release(ctx context.Context, name, id string) error {
	return r.call(ctx, "/release", name, id)
}

func (r *httpStore) call(ctx context.Context, path, name, id string) error {
	r.out = append(append(r.out[:0], `{"name":"`...), name...)
	r.out = append(append(append(r.out, `","id":"`...), id...), `"}`...)
	status, answer, err := r.conn.Post(ctx, path, r.out)
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return lease.ErrLost
	case status != http.StatusNoContent:
		return fmt.Errorf("%s %s: %d %s", path, name, status, answer)
	}
	return nil
}
