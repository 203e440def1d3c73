package textgzip

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func pack(t interface{ Fatal(...any) }, text []byte, pieces int) []byte {
	var out bytes.Buffer
	z := NewWriter(&out)
	for rest := text; len(rest) > 0; {
		n := min(len(rest), pieces)
		if _, err := z.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// check has another program's reader give the text back.
func check(t interface{ Fatal(...any) }, text []byte, pieces int) int {
	z := pack(t, text, pieces)
	r, err := gzip.NewReader(bytes.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(fmt.Sprintf("%d bytes: %v", len(text), err))
	}
	if !bytes.Equal(got, text) {
		t.Fatal(fmt.Sprintf("%d bytes became %d others", len(text), len(got)))
	}
	return len(z)
}

func traceLike(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,{"name":"I-%d","ph":"X","ts":%d,"dur":%d,"args":{"bir_id":%d,"opcode":"Matmult","deps":[`, i, i*100+r.IntN(100), r.IntN(1000), i)
		for k := range r.IntN(4) {
			fmt.Fprintf(&b, `{"bir_id":%d,"engine":"Engine%d","edge_type":"%s","end_time":%d},`, i-r.IntN(20), k, []string{"Flow", "Anti"}[r.IntN(2)], i*100)
		}
		b.WriteString("]}}\n")
	}
	return b.Bytes()[:n]
}

func TestRoundTrip(t *testing.T) {
	noise := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var fib []byte // counts that make a deep tree
	for a, b, s := 1, 1, byte(200); len(fib) < 900_000; a, b, s = b, a+b, s-3 {
		fib = append(fib, bytes.Repeat([]byte{s}, a)...)
	}
	r.Shuffle(len(fib), func(i, j int) { fib[i], fib[j] = fib[j], fib[i] })
	for name, text := range map[string][]byte{
		"nothing": nil, "one": []byte("x"), "digit": []byte("7"), "digits": bytes.Repeat([]byte("1234567890"), 300_000), "noise": noise,
		"zeros": make([]byte, 2<<20+5), "same": bytes.Repeat([]byte("a"), 1<<20+261), "fib": fib, "trace": traceLike(3<<20+17, 1),
		"block": traceLike(blockSize, 2), "words": []byte(strings.Repeat("some words, again and again; ", 50_000)),
	} {
		for _, pieces := range []int{1 << 30, 70_001} {
			size := check(t, text, pieces)
			if most := len(text) + len(text)/1000 + 64; size > most {
				t.Errorf("%s: %d bytes became %d", name, len(text), size)
			}
			if name == "trace" && size > len(text)/8 {
				t.Errorf("a trace of %d bytes became %d", len(text), size)
			}
		}
	}
}

func TestDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 40), 1, 20).Draw(t, "words")
		var text []byte
		for _, k := range rapid.SliceOfN(rapid.IntRange(0, 1000), 0, 400).Draw(t, "text") {
			text = append(text, words[k%len(words)]...)
			if k > 500 {
				text = fmt.Append(text, k*k)
			}
		}
		check(t, text, rapid.IntRange(1, 5000).Draw(t, "pieces"))
	})
}

// The same bytes whatever the sizes of the writes.
func TestSameBytes(t *testing.T) {
	text := traceLike(5<<20, 3)
	if !bytes.Equal(pack(t, text, 1<<30), pack(t, text, 12345)) {
		t.Error("the bytes depend on the sizes of writes")
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("abcdefgh12345678abcdefgh"))
	f.Add(traceLike(3000, 1))
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text, 1000) })
}

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestError(t *testing.T) {
	z := NewWriter(&failing{100_000})
	for range 100 {
		if _, err := z.Write(traceLike(1<<20, 4)); err != nil {
			break
		}
	}
	if err := z.Close(); err == nil || err.Error() != "disk full" {
		t.Errorf("Close says %v", err)
	}
	if _, err := z.Write([]byte("x")); err == nil {
		t.Error("a closed stream takes bytes")
	}
}

func TestDigitsIn(t *testing.T) {
	for b := range 256 {
		for at := range 8 {
			v := []byte("01234567")
			v[at] = byte(b)
			want := at
			if b >= '0' && b <= '9' {
				want = 8
			}
			x := uint64(0)
			for k, c := range v {
				x |= uint64(c) << (8 * k)
			}
			if got := digitsIn(x); got != want {
				t.Fatalf("%q has %d digits first, not %d", v, want, got)
			}
		}
	}
}
