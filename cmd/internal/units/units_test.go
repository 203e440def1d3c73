package units

import (
	"fmt"
	"strings"
	"testing"
)

func TestNanos(t *testing.T) {
	for _, c := range []struct {
		ns         uint64
		want, when string
	}{
		{0, "0 ns", "0.000 µs"},
		{999, "999 ns", "0.999 µs"},
		{9_999, "9,999 ns", "9.999 µs"},
		{10_000, "10.00 µs", "10.000 µs"},
		{28_099, "28.10 µs", "28.099 µs"},
		{999_994, "999.99 µs", "999.994 µs"},
		{999_996, "1.000 ms", "999.996 µs"},
		{7_584_110, "7.584 ms", "7,584.110 µs"},
		{9_999_600, "10.00 ms", "9,999.600 µs"},
		{22_530_000, "22.53 ms", "22,530.000 µs"},
		{3_056_310_000, "3.056 s", "3,056,310.000 µs"},
		{4_294_967_296, "4.295 s", "4,294,967.296 µs"},
		{999_990_000_000, "999.99 s", "999,990,000.000 µs"},
		{12_345_678_000_000, "12,346 s", "12,345,678,000.000 µs"},
		{1<<64 - 1, "18,446,744,074 s", "18,446,744,073,709,551.615 µs"},
	} {
		if got := Nanos(c.ns); got != c.want {
			t.Errorf("Nanos(%d) is %q, not %q", c.ns, got, c.want)
		}
		if got := Moment(c.ns); got != c.when {
			t.Errorf("Moment(%d) is %q, not %q", c.ns, got, c.when)
		}
	}
}

// TestTimeColumn has columns whose times share a unit, and some whose shortest
// would lose its digits in the unit of the longest.
func TestTimeColumn(t *testing.T) {
	for _, c := range []struct {
		ns   []uint64
		want string
	}{
		{nil, ""},
		{[]uint64{83, 1_528}, "   83 ns|1,528 ns"},
		{[]uint64{2_280, 28_099, 0}, " 2.28 µs|28.10 µs|    0 µs"},
		{[]uint64{7_584_110, 956_310}, "7.584 ms|0.956 ms"},
		{[]uint64{7_584_110, 99_990}, "7.584 ms|99.99 µs"},
		{[]uint64{7_584_110, 3_056_310_000}, "7.584 ms| 3.056 s"},
		{[]uint64{22_530_000, 758_411_000}, " 22.53 ms|758.41 ms"},
		{[]uint64{22_530, 999}, "22.53 µs|  999 ns"},
		{[]uint64{2_000_000_000_000, 100_000_000_000}, "2,000 s|  100 s"},
		{[]uint64{2_000_000_000_000, 99_000_000_000}, "2,000 s|99.00 s"},
	} {
		f := Column(c.ns...)
		var got []string
		for _, v := range c.ns {
			got = append(got, f(v))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%v are %q, not %q", c.ns, s, c.want)
		}
	}
	f := MomentColumn(64, 1_022_530_001)
	if got := fmt.Sprint(f(64), "|", f(1_022_530_001)); got != "        0.064 µs|1,022,530.001 µs" {
		t.Errorf("moments %q", got)
	}
}
