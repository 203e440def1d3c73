package fit

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/io/tenstorrent/profilelog"
)

// TestOpsByHand fits operators that follow a roofline: 1000 ns, and 2 bytes a
// ns of each of 10 cores.
func TestOpsByHand(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID,CORE COUNT,DEVICE FW DURATION [ns],DEVICE KERNEL DURATION [ns]," +
		"INPUT_0_W_PAD[LOGICAL],INPUT_0_Z_PAD[LOGICAL],INPUT_0_Y_PAD[LOGICAL],INPUT_0_X_PAD[LOGICAL],INPUT_0_DATATYPE\n")
	for k, n := range []int{64, 128, 512, 1024, 4096} {
		// 32 × n elements of two bytes on ten cores.
		ns := 1000 + float64(32*n*2)/10/2
		fmt.Fprintf(&b, "Unary,tt_dnn_device,%d,0,10,%v,%v,1[1],1[1],32[19],%d[%d],BFLOAT16\n", k<<10, ns, ns, n, n)
	}
	table, err := profilelog.ReadOps(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := FromOps(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Shapes != 5 || list[0].Class != "Unary" {
		t.Fatalf("%+v", list)
	}
	r := list[0]
	if math.Abs(r.Overhead-1000) > 20 || math.Abs(r.Bytes-2) > 0.05 || r.HeldOut == nil || *r.HeldOut > 3 {
		t.Errorf("overhead %v, %v bytes a ns, held out %v", r.Overhead, r.Bytes, r.HeldOut)
	}
}

func TestOpsOfRealTables(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bh_64_clip_encoder_1.csv.gz", "bh20_oft.csv.gz"} {
		table, err := profilelog.ReadOpsFile(filepath.Join(datadir.Path(t, "tenstorrent", "ops_tables"), name))
		if err != nil {
			t.Fatal(err)
		}
		list, err := FromOps(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		var held []float64
		for _, r := range list {
			if r.HeldOut != nil {
				held = append(held, *r.HeldOut)
			}
		}
		if len(held) < 3 || median(held) > 50 {
			t.Errorf("%s: held-out errors %v", name, held)
		}
	}
}
