package devicelog

import (
	"strings"
	"testing"

	"perfsim/io/tenstorrent/profilelog"
)

// Devices run side by side: each has its own sums. Times that contradict one
// another are in no sum.
func TestOpsByDevice(t *testing.T) {
	table, err := profilelog.ReadOps(strings.NewReader(`OP CODE,OP TYPE,DEVICE ID,DEVICE ARCH,DEVICE FW START CYCLE,DEVICE FW END CYCLE,DEVICE FW DURATION [ns],DEVICE KERNEL DURATION [ns]
Matmul,tt_dnn_device,0,blackhole,1000,1100,100,90
Matmul,tt_dnn_device,0,blackhole,1150,1250,100,90
Matmul,tt_dnn_device,1,blackhole,500,800,300,280
Add,tt_dnn_device,1,blackhole,900,917,17,6923932741
Add,tt_dnn_device,1,blackhole,950,960,10,-5
`))
	if err != nil {
		t.Fatal(err)
	}
	s := SummarizeOps(table)
	if s.Kernel != 460 || s.Impossible != 2 || s.FirstImpossible != "line 5, Add: a kernel of 6923932741 ns inside a firmware time of 17 ns" {
		t.Errorf("kernels %v, %d impossible, %q", s.Kernel, s.Impossible, s.FirstImpossible)
	}
	if len(s.Devices) != 2 || s.Devices[0] != (DeviceOps{0, 2, 180, 200}) || s.Devices[1] != (DeviceOps{1, 3, 280, 300}) {
		t.Errorf("devices %+v", s.Devices)
	}
}

// A row that a joined table has twice counts once; more cores than there are
// cannot be.
func TestOpsContradictions(t *testing.T) {
	table, err := profilelog.ReadOps(strings.NewReader(`OP CODE;OP TYPE;DEVICE ID;GLOBAL CALL COUNT;CORE COUNT;AVAILABLE WORKER CORE COUNT;DEVICE FW START CYCLE;DEVICE FW END CYCLE;DEVICE FW DURATION [ns];DEVICE KERNEL DURATION [ns]
Matmul;tt_dnn_device;0;1;8;64;1000;1100;100;90
Matmul;tt_dnn_device;0;1;8;64;1000;1100;100;90
Matmul;tt_dnn_device;0;2;8;64;1200;1300;100;90
Matmul;tt_dnn_device;0;3;80;64;1400;1500;100;90
`))
	if err != nil {
		t.Fatal(err)
	}
	s := SummarizeOps(table)
	if s.Kernel != 180 || s.Impossible != 2 || s.FirstImpossible != "line 3, Matmul: the operator, call and cycles of line 2 again" {
		t.Errorf("kernels %v, %d impossible, %q", s.Kernel, s.Impossible, s.FirstImpossible)
	}
}
