package ordered

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
)

func render(i int, buf []byte) []byte {
	for k := range i % 7 {
		buf = strconv.AppendInt(buf, int64(i*k), 10)
	}
	return append(buf, '\n')
}

func TestOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 1000} {
		var want []byte
		for i := range n {
			want = render(i, want)
		}
		for _, jobs := range []int{0, 1, 2, 3, 16} {
			var out bytes.Buffer
			if err := Write(context.Background(), &out, jobs, n, render); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%d pieces on %d goroutines are out of order", n, jobs)
			}
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestEndsAtErrors(t *testing.T) {
	for _, jobs := range []int{1, 4} {
		if err := Write(context.Background(), &failing{10}, jobs, 1000, render); err == nil || err.Error() != "disk full" {
			t.Errorf("%d goroutines: error %v", jobs, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		err := Write(ctx, &bytes.Buffer{}, jobs, 1000, func(i int, b []byte) []byte {
			if i == 20 {
				cancel()
			}
			return render(i, b)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d goroutines: error %v after the context ended", jobs, err)
		}
	}
}
