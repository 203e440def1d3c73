//go:build nats

package natsq

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a NATS server in this process.
type Server struct{ s *server.Server }

// Loopback reports whether an address HOST:PORT is of this machine alone; an
// empty host is. It returns the address with the host filled in.
func Loopback(addr string) (full string, loopback bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false, fmt.Errorf("%q is not HOST:PORT or :PORT", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", false, fmt.Errorf("%q: %q is no port", addr, port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	return net.JoinHostPort(host, port), host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// startup is how long a server may take to be ready.
const startup = 30 * time.Second

// Start starts a server at HOST:PORT that keeps its streams in the folder dir,
// every message flushed to the disk before it is acknowledged. Port 0 takes a
// free one. Away from loopback it needs protection.
func Start(addr, dir string, a Access) (*Server, error) {
	full, loopback, err := Loopback(addr)
	if err != nil {
		return nil, err
	}
	if !loopback && !a.Protects() {
		return nil, fmt.Errorf("%s can be reached from other machines: a token or mutual TLS is needed", addr)
	}
	host, port, err := net.SplitHostPort(full)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		n = server.RANDOM_PORT
	}
	opt := &server.Options{ServerName: "perfsim", Host: host, Port: n, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		Authorization: a.Token, MaxPayload: mostBody}
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	if a.Cert != "" {
		opt.TLS, opt.TLSConfig, opt.TLSTimeout = true, config, 5
		if a.CA != "" {
			opt.TLSVerify = true
			config.ClientAuth = 4 // tls.RequireAndVerifyClientCert
		}
	}
	s, err := server.NewServer(opt)
	if err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startup) {
		s.Shutdown()
		return nil, fmt.Errorf("NATS server: %w", errors.Join(errNotReady, taken(full)))
	}
	return &Server{s}, nil
}

var errNotReady = errors.New("it does not listen")

// taken says why an address cannot be listened on.
func taken(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		l.Close()
	}
	return err
}

// URL returns the address for clients.
func (s *Server) URL() string { return s.s.ClientURL() }

// Stop ends the server.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// mostBody bounds a message, in bytes.
const mostBody = 8 << 20
