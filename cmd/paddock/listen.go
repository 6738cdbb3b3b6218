package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// errBeyondLoopback says that other machines could reach an address.
var errBeyondLoopback = errors.New("other machines can reach that address")

// checkAddress returns what to bind for address, HOST:PORT, with the host as a
// number, so that what is bound is what was checked. Unless open it refuses
// with errBeyondLoopback what anybody but this machine can reach: an empty
// host, an unspecified address, a name of which not every address is loopback.
func checkAddress(ctx context.Context, address string, open bool) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usagef("--listen %s: give HOST:PORT, such as %s", address, usualAddress)
	}
	hosts, err := resolve(ctx, host)
	if err != nil {
		return "", usagef("--listen %s: %w", address, err)
	}
	if !open && !loopback(hosts) {
		return "", errBeyondLoopback
	}
	if len(hosts) > 0 {
		host = hosts[0].String()
	}
	return net.JoinHostPort(host, port), nil
}

// bind listens on a checked address.
func bind(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another process; choose another address with --listen HOST:PORT (port 0: any that is free)", address)
	}
	return listener, err
}

// resolve returns the addresses of host, IPv4 first; none for the empty host,
// which stands for every address of this machine.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "" {
		return nil, nil
	}
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range hosts {
		hosts[i] = hosts[i].Unmap()
	}
	slices.SortStableFunc(hosts, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return hosts, err
}

func loopback(hosts []netip.Addr) bool {
	beyond := func(a netip.Addr) bool { return !a.IsLoopback() }
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, beyond)
}

// urlOf returns the base URL by which this machine reaches a listener on
// address, which may be on every address there is.
func urlOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
