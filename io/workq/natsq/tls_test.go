//go:build nats

package natsq

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sign writes a certificate and its key, signed by the parent or by itself,
// and returns them.
func sign(t *testing.T, dir, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(int64(len(name))), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// With mutual TLS a client needs a certificate that the authority signed.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, key := sign(t, dir, "ca", nil, nil)
	sign(t, dir, "server", ca, key)
	sign(t, dir, "worker", ca, key)
	sign(t, dir, "stranger", nil, nil)
	access := func(name string) Access {
		a := Access{CA: filepath.Join(dir, "ca.crt")}
		if name != "" {
			a.Cert, a.Key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		}
		return a
	}
	if access("").Protects() || !access("server").Protects() {
		t.Error("an authority alone keeps nobody out, a certificate with it does")
	}
	server, err := Start("127.0.0.1:0", filepath.Join(dir, "store"), access("server"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	for name, good := range map[string]bool{"worker": true, "": false, "stranger": false} {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		nc, err := Connect(server.URL(), nil, access(name))
		if err == nil {
			_, err = nc.RequestWithContext(ctx, "$JS.API.INFO", nil)
			nc.Close()
		}
		cancel()
		if (err == nil) != good {
			t.Errorf("client %q: %v", name, err)
		}
	}
	if nc, err := Connect("", server, access("server")); err != nil {
		t.Errorf("within the process: %v", err)
	} else {
		nc.Close()
	}
}
