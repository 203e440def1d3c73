package format

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(b []byte) ([]byte, error) {
	s, err := FromBytes("x.gz", b)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return io.ReadAll(s)
}

// What is wrong with gzip data is told with the file and the byte.
func TestGzipSaysWhere(t *testing.T) {
	text := bytes.Repeat([]byte("perfsim "), 1000)
	z := packed(t, text)
	n := len(z)
	damaged := bytes.Clone(z)
	damaged[n-6] ^= 1 // of the checksum
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name string
		in   []byte
		text []byte
		want string // of the error, "" for none
	}{
		{"whole", z, text, ""},
		{"two members", join(z, z), join(text, text), ""},
		{"empty member", join(z, packed(t, nil), z), join(text, text), ""},
		{"padding", join(z, make([]byte, 3000)), text, ""},
		{"garbage", join(z, []byte("garbage")), text, fmt.Sprintf("x.gz: the gzip data end at byte %d of the file, and something that is no gzip follows at byte %d (0x67)", n, n)},
		{"garbage behind padding", join(z, []byte{0, 0, 'g'}), text, fmt.Sprintf("end at byte %d of the file, and something that is no gzip follows at byte %d (0x67)", n, n+2)},
		{"one byte", join(z, []byte{0x1f}), text, fmt.Sprintf("follows at byte %d (0x1f)", n)},
		{"half a header", join(z, z[:5]), text, fmt.Sprintf("x.gz: the gzip data break off at the end of the file, at byte %d", n+5)},
		{"cut", z[:n-9], nil, fmt.Sprintf("x.gz: the gzip data break off at the end of the file, at byte %d", n-9)},
		{"checksum", damaged, text, fmt.Sprintf("x.gz: the gzip data that end at byte %d of the file do not match their checksum", n)},
		{"header", []byte{0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil, "x.gz: starts like gzip but its header is damaged"},
		{"block", join(z[:10], []byte{0xff, 0xff}, z[12:]), nil, "x.gz: the gzip data are damaged before byte "},
	} {
		got, err := unpack(c.in)
		if c.text != nil && !bytes.Equal(got, c.text) {
			t.Errorf("%s: %d bytes, want %d", c.name, len(got), len(c.text))
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// Members of any sizes, read in pieces of any size, are what was packed.
func TestGzipMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		var in, want []byte
		for range 1 + rng.IntN(5) {
			text := make([]byte, rng.IntN(1<<20))
			for k := range min(len(text), 5000) {
				text[k] = byte(rng.IntN(256))
			}
			in, want = append(in, packed(t, text)...), append(want, text...)
		}
		s, err := FromBytes("x", in)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		buf := make([]byte, 1+rng.IntN(1<<20))
		for {
			n, err := s.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	}
}

func TestZstdSaysWhere(t *testing.T) {
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	z := e.EncodeAll(bytes.Repeat([]byte("perfsim "), 1000), nil)
	for in, want := range map[string]string{
		string(z) + "garbage": "x.gz: something that is no zstd follows the zstd data",
		string(z[:len(z)-3]):  "x.gz: the zstd data break off at the end of the file",
	} {
		if _, err := unpack([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
