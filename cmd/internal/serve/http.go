package serve

import (
	"crypto/subtle"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// openAPI is the description of the protocol; openapi_test.go writes it.
//
//go:embed openapi.json
var openAPI []byte

// handler returns all routes. socket says that the clients come through a unix
// socket, which web pages and other machines do not reach.
func (s *Server) handler(socket bool) http.Handler {
	mux := http.NewServeMux()
	for name := range calls() {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) { s.one(w, r, name) })
	}
	mux.HandleFunc("POST /v1/batch", s.batch)
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, openAPI) })
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusNotFound, errorText("there is no "+r.Method+" "+quoted(r.URL.Path)+": /openapi.json lists what there is"))
	})
	return s.permitted(mux, socket)
}

// permitted passes on requests that may be answered: those with the token, or
// where there is none those of this machine. Requests of web pages from
// elsewhere are refused, even where the page has given the server a name of
// its own.
func (s *Server) permitted(next http.Handler, socket bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if s.opt.Token != "" {
			given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if subtle.ConstantTimeCompare([]byte(given), []byte(s.opt.Token)) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				write(w, http.StatusUnauthorized, errorText("the token is missing or wrong"))
				return
			}
		} else if !socket && (!localName(r.Host) || !localOrigin(r.Header.Get("Origin"))) {
			write(w, http.StatusForbidden, errorText("requests come from this machine only"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localName reports whether a host, with or without a port, is this machine.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	switch strings.Trim(host, "[]") {
	case "", "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// localOrigin reports whether the page that asks, where it is one, is of this
// machine.
func localOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && localName(u.Host)
}

// one answers one call.
func (s *Server) one(w http.ResponseWriter, r *http.Request, call string) {
	body, release, err := s.body(w, r)
	defer release()
	var q *request
	if err == nil {
		q, err = fromURL(call, r.URL.RawQuery)
	}
	if err == nil {
		err = q.takeBody(body)
	}
	if err != nil {
		status, text := fault(r.Context(), err)
		s.metrics.done(call, status, 0)
		write(w, status, errorText(text))
		return
	}
	status, answer := s.do(r.Context(), q)
	s.answerIn(w)
	write(w, status, answer)
}

// answerIn gives the client the time of a request to take the answer.
func (s *Server) answerIn(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.opt.Timeout)) // else the connection has none
}

// write writes a JSON answer.
func write(w http.ResponseWriter, status int, answer []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer)))
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // the client is gone where this fails
}

// firstRead is the memory taken for a body before any of it has arrived; memory
// doubles as it fills.
const firstRead = 64 << 10

// body reads the body of a request within the limits of one body and of all
// that are in memory. release gives its share back.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	taken := int64(0)
	release = func() { s.bodies.Release(taken) }
	if r.ContentLength > s.opt.MaxBody {
		return nil, release, failf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", s.opt.MaxBody)
	}
	if r.ContentLength == 0 {
		return nil, release, nil
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(s.opt.Timeout)) // a server without deadlines has none to set
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	size := min(firstRead, s.opt.MaxBody+1)
	if r.ContentLength > 0 {
		size = min(size, r.ContentLength+1)
	}
	for {
		if !s.bodies.TryAcquire(size - taken) {
			return nil, release, failf(http.StatusServiceUnavailable, "the bodies of other requests take all memory there is for them: try again later")
		}
		taken = size
		grown := make([]byte, len(body), size)
		copy(grown, body)
		for body = grown; len(body) < cap(body); {
			n, err := r.Body.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
			switch {
			case errors.Is(err, io.EOF):
				return body, release, nil
			case errors.Is(err, os.ErrDeadlineExceeded):
				return nil, release, failf(http.StatusRequestTimeout, "the body did not arrive within %v", s.opt.Timeout)
			case err != nil:
				return nil, release, failf(http.StatusBadRequest, "the body: %w", err)
			}
		}
		if int64(len(body)) > s.opt.MaxBody {
			return nil, release, failf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", s.opt.MaxBody)
		}
		size = min(2*size, s.opt.MaxBody+1)
	}
}

// batch answers JSON lines with JSON lines as they come.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex() // where it is not possible the answers come behind the last request
	w.Header().Set("Content-Type", "application/jsonl")
	deadline := func() {
		_ = c.SetReadDeadline(time.Now().Add(s.opt.Timeout))
		s.answerIn(w)
	}
	deadline()
	err := s.Lines(r.Context(), reading{r.Body, deadline}, flushing{w, c})
	if err != nil && r.Context().Err() == nil {
		s.log("batch: %v", err)
	}
}

// reading calls before in front of every read.
type reading struct {
	r      io.Reader
	before func()
}

func (r reading) Read(p []byte) (int, error) {
	r.before()
	return r.r.Read(p)
}

// flushing passes on every write at once.
type flushing struct {
	w io.Writer
	c *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

// health is the answer of /healthz.
type health struct {
	Status  string `json:"status"` // ok while the server answers
	Version string `json:"version"`
	Modules int    `json:"held_modules"` // modules that are held
	Bytes   int64  `json:"held_bytes"`   // memory that they take
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	n, bytes, _ := s.held.count()
	b, err := encode(health{"ok", s.opt.Version, n, bytes})
	if err != nil {
		b = errorText(err.Error())
	}
	write(w, http.StatusOK, b)
}
