package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// lineAnswer is the answer to a JSON line.
type lineAnswer struct {
	ID     json.RawMessage `json:"id,omitempty"` // id of the request
	Status int             `json:"status"`
	Result json.RawMessage `json:"result,omitempty"` // answer of the call
	Error  string          `json:"error,omitempty"`
}

// Lines answers the requests of in, one a line, on out, in their order. It
// returns at the end of in, when ctx ends, or when out fails.
func (s *Server) Lines(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := bufio.NewReaderSize(in, 64<<10)
	queue := make(chan chan []byte, max(s.opt.Jobs, 1))
	written := make(chan error, 1)
	go func() {
		var failed error
		for answer := range queue {
			b := <-answer
			if failed != nil {
				continue
			}
			if _, failed = out.Write(b); failed != nil {
				cancel()
			}
		}
		written <- failed
	}()
	err := s.readLines(ctx, r, queue)
	close(queue)
	if failed := <-written; failed != nil {
		return failed
	}
	return err
}

// readLines has the requests of r answered; queue takes the places of their
// answers.
func (s *Server) readLines(ctx context.Context, r *bufio.Reader, queue chan<- chan []byte) error {
	for ctx.Err() == nil {
		taken := int64(0)
		line, err := readLine(r, s.opt.MaxBody/3*4+firstRead, func(n int64) bool {
			ok := s.bodies.TryAcquire(n)
			if ok {
				taken += n
			}
			return ok
		})
		refused := errors.Is(err, errLongLine) || errors.Is(err, errBusy)
		if refused || err != nil && len(line) == 0 || len(bytes.TrimSpace(line)) == 0 {
			s.bodies.Release(taken)
			taken = 0
		}
		if len(line) == 0 && err != nil && !refused {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		answer := make(chan []byte, 1)
		select {
		case queue <- answer:
		case <-ctx.Done():
			s.bodies.Release(taken)
			return ctx.Err()
		}
		if refused {
			status := http.StatusRequestEntityTooLarge
			if errors.Is(err, errBusy) {
				status = http.StatusServiceUnavailable
			}
			answer <- lineText(nil, status, errorText(err.Error()))
			continue
		}
		go func() {
			defer s.bodies.Release(taken)
			answer <- s.line(ctx, line)
		}()
	}
	return ctx.Err()
}

// line answers one line.
func (s *Server) line(ctx context.Context, text []byte) []byte {
	q, err := fromLine(text)
	if err != nil {
		status, message := fault(ctx, err)
		s.metrics.done("line", status, 0)
		return lineText(q.ID, status, errorText(message))
	}
	status, answer := s.do(ctx, q)
	return lineText(q.ID, status, answer)
}

// lineText makes the answer to a line of an HTTP answer.
func lineText(id json.RawMessage, status int, answer []byte) []byte {
	a := lineAnswer{ID: id, Status: status}
	if status == http.StatusOK {
		a.Result = answer
	} else {
		var e struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(answer, &e) == nil {
			a.Error = e.Error
		}
	}
	b, err := encode(a)
	if err != nil {
		return errorText(err.Error())
	}
	return b
}

var (
	errLongLine = errors.New("the line is longer than a request can be")
	errBusy     = errors.New("the bodies of other requests take all memory there is for them: try again later")
)

// readLine reads up to a line end, which is left out. A line of more than limit
// bytes is skipped and is errLongLine, one for which take has no memory errBusy.
func readLine(r *bufio.Reader, limit int64, take func(n int64) bool) ([]byte, error) {
	var line []byte
	var refused error
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case refused != nil:
		case int64(len(line)+len(part)) > limit:
			refused, line = errLongLine, nil
		case !take(int64(len(part))):
			refused, line = errBusy, nil
		default:
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case refused != nil && (err == nil || errors.Is(err, io.EOF)):
			return nil, refused
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}
