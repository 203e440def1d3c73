package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"perfsim/systems"
	"perfsim/systems/whatif"
)

// failure is an error with the HTTP status that says whose it is.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func failf(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// statusGone is the status of requests whose client left; nobody reads it but
// the metrics.
const statusGone = 499

// fault returns the status and the text of an error. An error that is not the
// request's own is the module's: it cannot be read or predicted.
func fault(ctx context.Context, err error) (status int, text string) {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	}
	var f *failure
	var setting *whatif.SettingError
	var request systems.RequestError
	switch {
	case errors.As(err, &f):
		return f.status, err.Error()
	case errors.Is(err, context.Canceled):
		return statusGone, "the client left"
	case errors.As(err, &setting) || errors.As(err, &request):
		return http.StatusBadRequest, err.Error()
	}
	return http.StatusUnprocessableEntity, err.Error()
}
