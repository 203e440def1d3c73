//go:build nats

package natsq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Files are the files that travel with tasks, by their SHA-256.
type Files struct{ js jetstream.JetStream }

// Files returns the store of the queue's server, made where it is not there.
func (q *Queue) Files(ctx context.Context) (*Files, error) {
	err := retry(ctx, callTime, func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: fileBucket, Description: "inputs by their SHA-256",
			Storage: jetstream.FileStorage, Replicas: max(q.opt.Replicas, 1)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store of files: %w", err)
	}
	return &Files{q.js}, nil
}

// sending is how long one file may take.
const sending = 30 * time.Minute

// Put stores what open gives under a name, unless it is there.
func (f *Files) Put(ctx context.Context, name string, open func() (io.ReadCloser, error)) error {
	return f.in(ctx, sending, func(ctx context.Context, store jetstream.ObjectStore) error {
		if _, err := store.GetInfo(ctx, name); err == nil {
			return nil
		}
		in, err := open()
		if err != nil {
			return permanent{err}
		}
		defer in.Close()
		_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name}, in)
		return err
	})
}

// Get writes the file of a SHA-256 to path, which appears when it is whole and
// has this sum.
func (f *Files) Get(ctx context.Context, sum, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return f.in(ctx, sending, func(ctx context.Context, store jetstream.ObjectStore) error {
		o, err := store.Get(ctx, sum)
		if err != nil {
			return err
		}
		defer o.Close()
		tmp, err := os.CreateTemp(filepath.Dir(path), ".fetch-*")
		if err != nil {
			return permanent{err}
		}
		defer os.Remove(tmp.Name())
		h := sha256.New()
		_, err = io.Copy(io.MultiWriter(tmp, h), o)
		if cerr := tmp.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != sum {
			return permanent{fmt.Errorf("file %s came with the SHA-256 %s", sum, got)}
		}
		return os.Rename(tmp.Name(), path)
	})
}

// Offer stores what a worker needs to open a sweep, in place of what is there.
func (f *Files) Offer(ctx context.Context, sweep string, text []byte) error {
	return f.in(ctx, sending, func(ctx context.Context, store jetstream.ObjectStore) error {
		_, err := store.PutBytes(ctx, "sweep-"+sweep, text)
		return err
	})
}

// Offered returns what Offer stored.
func (f *Files) Offered(ctx context.Context, sweep string) (text []byte, err error) {
	err = f.in(ctx, callTime, func(ctx context.Context, store jetstream.ObjectStore) error {
		text, err = store.GetBytes(ctx, "sweep-"+sweep)
		return err
	})
	return text, err
}

// in repeats a call of the store, of which one may take limit.
func (f *Files) in(ctx context.Context, limit time.Duration, call func(context.Context, jetstream.ObjectStore) error) error {
	return retry(ctx, limit, func(ctx context.Context) error {
		store, err := f.js.ObjectStore(ctx, fileBucket)
		if err != nil {
			return err
		}
		return call(ctx, store)
	})
}
