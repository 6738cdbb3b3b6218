package client

import (
	"context"
	"net/http"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	freezesPath = "/v1/freezes"
	rulesPath   = "/v1/rules"
)

// Freeze stops new grants of the locks of a scope, and returns how many leases are left.
func (c *Client) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.FreezeStatus, error) {
	if err := checkText("reason", r.Reason); err != nil {
		return lock.FreezeStatus{}, err
	}
	return ofScope[lock.FreezeStatus](ctx, c, freezesPath, r.Scope, call[lock.FreezeStatus]{
		request: request{method: http.MethodPut, body: wire.FreezeRequestOf(r)}, changes: true, parse: freezeOf(r.Scope),
	})
}

// Thaw ends the freeze of the scope, or finds that there is none.
func (c *Client) Thaw(ctx context.Context, r lock.ThawRequest) error {
	_, err := ofScope(ctx, c, freezesPath, r.Scope, removal())
	return err
}

// Frozen returns the freeze of the scope and how many leases are left, or lock.ErrNotFound.
func (c *Client) Frozen(ctx context.Context, s lock.Scope) (lock.FreezeStatus, error) {
	return ofScope(ctx, c, freezesPath, s, call[lock.FreezeStatus]{parse: freezeOf(s)})
}

// freezeOf returns a parser of the freeze of that scope.
func freezeOf(s lock.Scope) parser[lock.FreezeStatus] {
	return model(wire.ToFreezeStatus, func(f api.FreezeStatus) bool { return f.Scope == string(s) })
}

// Freezes returns the freezes in force, in the order of their scopes.
func (c *Client) Freezes(ctx context.Context) ([]lock.Freeze, error) {
	return call[[]lock.Freeze]{
		request: request{path: freezesPath}, limit: maxListResponse,
		parse: model(wire.ToFreezeList, func(l api.FreezeList) bool { return l.Freezes != nil }),
	}.get(ctx, c)
}

// SetRule sets the rule of a scope.
func (c *Client) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	return ofScope(ctx, c, rulesPath, r.Scope, call[lock.Rule]{
		request: request{method: http.MethodPut, body: wire.RuleRequestOf(r)}, changes: true,
		parse: model(wire.ToRule, func(m api.Rule) bool { return m.Scope == string(r.Scope) }),
	})
}

// RemoveRule removes the rule of a scope, or finds that there is none.
func (c *Client) RemoveRule(ctx context.Context, s lock.Scope) error {
	_, err := ofScope(ctx, c, rulesPath, s, removal())
	return err
}

// Rules returns the rules, in the order of their scopes.
func (c *Client) Rules(ctx context.Context) ([]lock.Rule, error) {
	return call[[]lock.Rule]{
		request: request{path: rulesPath}, limit: maxListResponse,
		parse: model(wire.ToRuleList, func(l api.RuleList) bool { return l.Rules != nil }),
	}.get(ctx, c)
}

// Cells returns the databases of a service that has several, none of one with one.
func (c *Client) Cells(ctx context.Context) ([]paddock.Cell, error) {
	return call[[]paddock.Cell]{
		request: request{path: "/v1/cells"}, limit: maxListResponse,
		parse: model(wire.ToCellList, func(l api.CellList) bool { return l.Cells != nil }),
	}.get(ctx, c)
}

// ServiceInfo returns how the service itself is: its replicas, its databases, and the settings of the replica that
// answers. It needs a key with the role admin for all names.
func (c *Client) ServiceInfo(ctx context.Context) (paddock.ServiceInfo, error) {
	return call[paddock.ServiceInfo]{
		request: request{path: "/v1/service"}, limit: maxListResponse,
		parse: model(wire.ToServiceInfo, func(s api.ServiceInfo) bool { return s.Settings != nil && s.Databases != nil }),
	}.get(ctx, c)
}

// removal returns a call that removes what is at its path.
func removal() call[struct{}] {
	return call[struct{}]{request: request{method: http.MethodDelete}, changes: true, success: []int{http.StatusNoContent}}
}

// ofScope makes the call for the scope, at its path below the base.
func ofScope[T any](ctx context.Context, client *Client, base string, s lock.Scope, c call[T]) (T, error) {
	if err := lock.CheckScope(s); err != nil { // some have no form in a URL
		return *new(T), err
	}
	c.path = base + "/" + string(s)
	out, err := c.do(ctx, client)
	return out.value, err
}
