//go:build nats

package natsq

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Access is how a client and a server know each other. The zero value is no
// protection.
type Access struct {
	Token string
	// Cert, Key and CA are files of a certificate, its key, and the authority
	// that signed both sides' certificates: mutual TLS. Without a certificate, CA
	// alone checks the server.
	Cert, Key, CA string
}

// Protects reports whether strangers are kept out.
func (a Access) Protects() bool { return a.Token != "" || a.Cert != "" && a.CA != "" }

// tls returns the configuration of a side, nil for none.
func (a Access) tls() (*tls.Config, error) {
	if a.Cert == "" && a.CA == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", a.Cert, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if a.CA != "" {
		text, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", a.CA)
		}
		c.RootCAs, c.ClientCAs = pool, pool
	}
	return c, nil
}

// Connect connects to the servers of a URL, or to server where that is not nil,
// and keeps trying to while it is not there.
func Connect(url string, server *Server, a Access) (*nats.Conn, error) {
	opt := []nats.Option{nats.Name("perfsim"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectBufSize(-1),
		nats.Timeout(5 * time.Second)}
	if a.Token != "" {
		opt = append(opt, nats.Token(a.Token))
	}
	if server != nil {
		opt = append(opt, nats.InProcessServer(server.s))
	} else {
		opt = append(opt, nats.RetryOnFailedConnect(true))
		config, err := a.tls()
		if err != nil {
			return nil, err
		}
		if config != nil {
			opt = append(opt, nats.Secure(config))
		}
	}
	nc, err := nats.Connect(url, opt...)
	if err != nil {
		return nil, fmt.Errorf("NATS %s: %w", url, err)
	}
	return nc, nil
}

// The streams and the store of inputs.
const (
	taskStream   = "PERFSIM_TASKS"
	resultStream = "PERFSIM_RESULTS"
	fileBucket   = "perfsim-files"
)

// token makes a text a part of a subject.
func token(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

// taskSubject and resultSubject are the subjects of a task; "*" or ">" may
// stand for the last parts.
func taskSubject(engine, sweep, id string) string {
	return "perfsim.task." + token(engine) + "." + sweep + "." + id
}

func resultSubject(sweep, id string) string { return "perfsim.result." + sweep + "." + id }

// last is the last part of a subject: the ID.
func last(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// deadHeader marks a result that says why there is none.
const deadHeader = "Perfsim-Dead"

// isThere reports whether a message was refused because its subject has one.
func isThere(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && strings.Contains(api.Description, "maximum messages per subject exceeded")
}

// refused returns why a connection is closed for good, as it is where the
// server does not take the token or the certificate; nil while it is not.
func refused(nc *nats.Conn) error {
	if !nc.IsClosed() {
		return nil
	}
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	return fmt.Errorf("NATS: %w", nats.ErrConnectionClosed)
}
