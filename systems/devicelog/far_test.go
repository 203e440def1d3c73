package devicelog

import (
	"fmt"
	"strings"
	"testing"
)

// Two cores are each busy 1800 of 2600 cycles. A zone that lies far away, before
// or after all others, or lasts absurdly long, changes that by nothing and is
// told; one that lies ten times the extent away is idle time as it is.
func TestFarZone(t *testing.T) {
	const head = "ARCH: blackhole, CHIP_FREQ[MHz]: 1350, Max Compute Cores: 140\n" +
		"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data\n"
	zone := func(core, from, to int) string {
		return fmt.Sprintf("0,%d,1,BRISC,2,%d,0,1,,,BRISC-KERNEL,ZONE_START,10,/k.cc,\n0,%d,1,BRISC,2,%d,0,1,,,BRISC-KERNEL,ZONE_END,10,/k.cc,\n", core, from, core, to)
	}
	var body strings.Builder
	for core := 1; core <= 2; core++ {
		for k := range 3 {
			body.WriteString(zone(core, 1_000_000_000+1000*k, 1_000_000_600+1000*k))
		}
	}
	for _, c := range []struct {
		name, extra string
		far         int
		mean        float64
	}{
		{"none", "", 0, 1800. / 2600},
		{"after", zone(2, 5_000_000_000, 5_000_000_400), 1, 1800. / 2600},
		{"before", zone(3, 5, 9), 1, 1800. / 2600 * 2 / 3}, // a third core that is idle
		{"long", zone(2, 1_000_000_700, 9_000_000_000), 1, 1800. / 2600},
		{"nested", zone(1, 5_000_000_000, 5_000_000_900) + zone(2, 5_000_000_000, 5_000_000_400), 2, 1800. / 2600},
		{"near", zone(2, 1_000_026_000, 1_000_026_600), 0, (1800. + 2400) / 2 / 26600},
	} {
		l := readText(t, head+body.String()+c.extra)
		p, err := New(t.Context(), "log.csv", l, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &p.Maps[0]
		if d := m.Mean() - c.mean; m.Far != c.far || d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: %d far, mean share %v; want %d, %v", c.name, m.Far, m.Mean(), c.far, c.mean)
		}
		told := false
		for _, d := range p.Diags {
			told = told || d.Code == diagFarZone
		}
		if told != (c.far > 0) {
			t.Errorf("%s: told %v", c.name, told)
		}
	}
}
