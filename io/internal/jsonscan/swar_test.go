package jsonscan

import (
	"math/rand/v2"
	"testing"
)

// Both find what looking at every byte finds, at any place in any neighbourhood.
func TestBytesAtATime(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	const some = "\"\\{}[]Yy_\x7f!#z|~^\x5a\x00\x80\xff ,:1a"
	b := make([]byte, 40)
	for range 100_000 {
		b = b[:r.IntN(40)]
		for k := range b {
			if b[k] = 'a'; r.IntN(4) == 0 {
				b[k] = some[r.IntN(len(some))]
			}
		}
		from := r.IntN(len(b) + 1)
		want := from
		for want < len(b) && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := toQuote(b, from); got != want {
			t.Fatalf("quote in %q from %d: %d, want %d", b, from, got, want)
		}
		want = from
		for want < len(b) && meaning[b[want]] == plain {
			want++
		}
		if got := toBracket(b, from); got != want {
			t.Fatalf("bracket in %q from %d: %d, want %d", b, from, got, want)
		}
	}
}
