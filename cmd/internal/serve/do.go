package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// do answers a request: the status and a JSON object.
func (s *Server) do(parent context.Context, q *request) (status int, answer []byte) {
	began := time.Now()
	ctx, done := s.within(parent)
	defer done()
	name := q.Call
	defer func() {
		if x := recover(); x != nil {
			s.metrics.panicked()
			s.log("panic while answering %s: %v\n%s", name, x, debug.Stack())
			status, answer = http.StatusInternalServerError, errorText("an error of the server; its log has more")
		}
		s.metrics.done(name, status, time.Since(began))
	}()
	call, ok := calls()[q.Call]
	if !ok {
		name = "unknown"
		return http.StatusBadRequest, errorText("call " + quoted(q.Call) + " is not one of " + strings.Join(callNames(), ", "))
	}
	release, err := s.slot(ctx)
	if err == nil {
		defer release()
		var v any
		if v, err = call(s, ctx, q); err == nil {
			if answer, err = encode(v); err == nil {
				return http.StatusOK, answer
			}
		}
	}
	status, text := fault(ctx, err)
	return status, errorText(text)
}

// callNames lists the calls, sorted.
func callNames() []string { return slices.Sorted(maps.Keys(calls())) }

// quoted returns text as a JSON string, cut where it is long.
func quoted(text string) string {
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	b, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(b)
}

// slot waits until one of the places for work is free. It fails at once where
// too many requests wait already.
func (s *Server) slot(ctx context.Context) (release func(), err error) {
	select {
	case s.waiting <- struct{}{}:
	default:
		return nil, failf(http.StatusServiceUnavailable, "%d requests wait already: try again later", cap(s.waiting)-cap(s.slots))
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots; <-s.waiting }, nil
	case <-ctx.Done():
		<-s.waiting
		return nil, ctx.Err()
	}
}

// encode returns v as JSON with a line end.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// errorText returns an error as JSON.
func errorText(text string) []byte {
	b, err := encode(struct {
		Error string `json:"error"`
	}{text})
	if err != nil {
		return []byte("{\"error\":\"\"}\n")
	}
	return b
}
