package devicelog

import (
	"fmt"
	"testing"
)

func TestCounters(t *testing.T) {
	const head = "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n" +
		"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID,  zone name, type, source line, source file, meta data\n"
	packed := func(value, ref, typ uint64) uint64 { return value | ref<<32 | typ<<56 }
	l := readLog(t, head+
		`0,1,1,TRISC_1,9090,100,5,1024,,TS_DATA,0,,{"counter type":"FPU_COUNTER";"ref cnt":1000;"value":600}`+"\n"+
		`0,1,1,TRISC_1,9090,200,5,2048,,TS_DATA,0,,{"counter type":"FPU_COUNTER";"ref cnt":1000;"value":100}`+"\n"+
		`0,1,2,TRISC_1,9090,200,5,2048,,TS_DATA,0,,{"counter type":"FPU_COUNTER";"ref cnt":2000;"value":500}`+"\n"+
		`0,1,2,TRISC_1,9090,210,5,2048,,TS_DATA,0,,{"counter type":"SFPU_COUNTER";"ref cnt":0;"value":500}`+"\n"+
		fmt.Sprintf("1,1,2,TRISC_1,9090,210,%d,2048,,TS_DATA,0,,\n", packed(30, 120, 4)))
	got := fmt.Sprint(Counters(l, newTopology(l)))
	want := fmt.Sprint([]CounterInfo{{0, "FPU_COUNTER", 3, 2, 1200, 4000, .3, .1, .25, .6}, {1, "counter 4", 1, 1, 30, 120, .25, .25, .25, .25}})
	if got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	if c := Counters(logOf(t, "0/BRISC/1/f/s/10/1027"), nil); c != nil {
		t.Errorf("%v of a log without counters", c)
	}
}
