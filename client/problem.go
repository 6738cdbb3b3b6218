package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

// refusal returns the error that an answer without success stands for: what its
// problem document says, if it is one of Paddock's.
func refusal(changes bool, res *http.Response, text []byte) error {
	if mediaType(res) != contentProblem {
		return notPaddock(changes, res, nil)
	}
	var p openapi.Problem
	if err := json.Unmarshal(text, &p); err != nil {
		return notPaddock(changes, res, err)
	}
	if p.Code == "" || res.StatusCode >= http.StatusInternalServerError && !p.Code.Valid() {
		return notPaddock(changes, res, errors.New("the problem has no code of Paddock's"))
	}
	return problemFrom(p, res.StatusCode, retryAfter(res))
}

// itemRefusal returns the error that the problem of an item of a batch stands for.
func itemRefusal(p openapi.Problem, status int) error {
	if status >= http.StatusInternalServerError && !p.Code.Valid() {
		return &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: fromMs(given(p.RetryAfterMs)),
			Detail: fmt.Sprintf("The answer, HTTP %d, is none that is known here. ", status) + maybeDone}
	}
	return problemFrom(p, status, 0)
}

// problemFrom returns the error that a problem stands for, where nothing in it says
// when to try again with after.
func problemFrom(p openapi.Problem, status int, after time.Duration) error {
	return &lock.Error{
		Code:       lock.Code(p.Code),
		Detail:     cmp.Or(p.Detail, p.Title, http.StatusText(status)),
		Field:      strings.TrimPrefix(given(p.Pointer), "/"),
		Holder:     given(p.Holder),
		RetryAfter: cmp.Or(fromMs(given(p.RetryAfterMs)), after),
		Ahead:      given(p.WaitersAhead),
		KeptFor:    fromMs(given(p.PlaceKeptMs)),
		Capacity:   given(p.Capacity),
		Token:      lock.Token(given(p.FencingToken)),
		Newest:     lock.Token(given(p.NewestToken)),
		Version:    given(p.Version),
		Ended:      lock.KindOf(string(given(p.Ended))),
		EndedAt:    given(p.EndedAt),
		Reason:     given(p.Reason),
		Cause:      fmt.Errorf("HTTP %d, request_id %q", status, p.RequestID),
	}
}

// retryAfter returns the header Retry-After where it counts seconds, else zero.
func retryAfter(res *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
