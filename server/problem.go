package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-lock/paddock/lock"
)

// usualRetry is when to try again after a 503 or a 429 that does not say.
const usualRetry = time.Second

// A refusal is how a Code looks over HTTP. Its detail is for errors that bring none.
type refusal struct {
	status int
	detail string
}

// refusals is the only place where a Code meets a status.
var refusals = map[lock.Code]refusal{
	lock.ErrInvalid:          {http.StatusBadRequest, "The request is not what /openapi.yaml describes. Mend it before sending it again."},
	lock.ErrHeld:             {http.StatusConflict, "Somebody else holds the lock. Try again later."},
	lock.ErrLeaseLost:        {http.StatusConflict, "The lease has ended. Stop the work; to go on, acquire with a new lease_id."},
	lock.ErrLeaseIDInUse:     {http.StatusConflict, "The lease_id belongs to another lease or place. Choose a new random UUID."},
	lock.ErrCapacityMismatch: {http.StatusConflict, "Permits of another capacity are out or waited for. Ask with that capacity, or wait until all are back."},
	lock.ErrTooManyWaiters:   {http.StatusTooManyRequests, "As many wait, or watch, as may. Try again later."},
	lock.ErrTokenMismatch:    {http.StatusConflict, "That token does not hold the lock. Look at the lock again."},
	lock.ErrVersionMismatch:  {http.StatusConflict, "The resource is at another version. Read it again and decide anew."},
	lock.ErrStaleToken:       {http.StatusPreconditionFailed, "A greater token has been granted or seen. Stop the work."},
	lock.ErrUnknownToken:     {http.StatusPreconditionFailed, "The token was never granted for this lock. Send the one that acquire returned."},
	lock.ErrNotFound:         {http.StatusNotFound, "Nothing was ever written under this key."},
	lock.ErrKeyMissing:       {http.StatusUnauthorized, "This service asks for an API key. Send it as Authorization: Bearer KEY."},
	lock.ErrKeyInvalid:       {http.StatusUnauthorized, "The API key is none that this service knows, or it was revoked. Ask whoever runs the service for another."},
	lock.ErrKeyExpired:       {http.StatusUnauthorized, "The API key has expired. Ask whoever runs the service for another."},
	lock.ErrRoleMissing:      {http.StatusForbidden, "The API key's role does not allow this. Use a key with a greater role."},
	lock.ErrNameNotAllowed:   {http.StatusForbidden, "The API key is for names under other prefixes. Use a key for this one."},
	lock.ErrRateLimited:      {http.StatusTooManyRequests, "More calls than this API key may make. Slow down, and go on after Retry-After."},
	lock.ErrUnavailable:      {http.StatusServiceUnavailable, "The service cannot do this now. Nothing was changed; try again."},
	lock.ErrUnknownOutcome:   {http.StatusServiceUnavailable, "It may or may not have been done. Send the same call again to find out."},
	lock.ErrInternal:         {http.StatusInternalServerError, "A fault of the service. Its log says more under this request_id."},
	ErrNoRoute:               {http.StatusNotFound, "There is nothing at this address; /docs/ lists what there is."},
	ErrMethodNotAllowed:      {http.StatusMethodNotAllowed, "This address has other methods; Allow lists them."},
	ErrCrossOrigin:           {http.StatusForbidden, "A browser sent this from another site. Send it from the service's own address, or without a browser."},
	ErrBodyTooLarge:          {http.StatusRequestEntityTooLarge, "The body has more than " + strconv.Itoa(MaxBodySize) + " bytes. Send less."},
	ErrHeaderTooLarge: {http.StatusRequestHeaderFieldsTooLarge,
		"The header has more than " + strconv.Itoa(maxHeaderSize) + " bytes. Send a shorter query and fewer or shorter header fields."},
	ErrUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body must be application/json. Send that Content-Type, as curl --json does."},
}

// refusalOf returns err as an error of the domain that has all its Code promises
// over HTTP: a status, a detail, and when to try again.
func refusalOf(err error) *lock.Error {
	e := lock.Error{Code: lock.ErrInternal}
	if found := (*lock.Error)(nil); errors.As(err, &found) {
		e = *found
	} else if code := lock.Code(""); errors.As(err, &code) {
		e.Code = code
	}
	if _, known := refusals[e.Code]; !known {
		e = lock.Error{Code: lock.ErrInternal, Cause: e.Cause}
	}
	known := refusals[e.Code]
	if e.Detail == "" || e.Code == lock.ErrInternal {
		e.Detail = known.detail
	}
	if (known.status == http.StatusServiceUnavailable || known.status == http.StatusTooManyRequests) && e.RetryAfter <= 0 {
		e.RetryAfter = usualRetry
	}
	return &e
}

// A parameterError is a refusal of a parameter in the path or the query.
type parameterError struct{ error }

func (e parameterError) Unwrap() error { return e.error }

// pointerTo returns where the fault is: the name of a parameter, else the JSON
// Pointer to a member of the body, which is empty for the whole of it. It returns
// nil where there is nothing to point to.
func pointerTo(e *lock.Error, r *http.Request, err error) *string {
	inBody := r.Method == http.MethodPost || r.Method == http.MethodPut
	if errors.As(err, new(parameterError)) {
		inBody = false
	}
	switch {
	case e.Code != lock.ErrInvalid, !inBody && e.Field == "":
		return nil
	case !inBody:
		return &e.Field
	case e.Field == "":
		return new("")
	}
	return new(string(jsontext.Pointer("").AppendToken(e.Field)))
}
