package server

import "github.com/paddock-lock/paddock/lock"

// The codes of HTTP itself, beside those of the domain.
const (
	// ErrNoRoute: there is nothing at this address.
	ErrNoRoute lock.Code = "no_route"
	// ErrMethodNotAllowed: the address has other methods; Allow lists them.
	ErrMethodNotAllowed lock.Code = "method_not_allowed"
	// ErrCrossOrigin: a browser sent a write from another site.
	ErrCrossOrigin lock.Code = "cross_origin"
	// ErrBodyTooLarge: the body has more than MaxBodySize bytes.
	ErrBodyTooLarge lock.Code = "body_too_large"
	// ErrHeaderTooLarge: the header has more bytes than are allowed.
	ErrHeaderTooLarge lock.Code = "header_too_large"
	// ErrUnsupportedMediaType: the body is not application/json, or is encoded.
	ErrUnsupportedMediaType lock.Code = "unsupported_media_type"
)
