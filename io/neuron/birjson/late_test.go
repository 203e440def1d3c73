package birjson

import (
	"testing"

	"perfsim/components"
)

// Allocations behind the blocks count as those before them do, also for a row
// whose member "perfsim" gives another figure.
func TestLateAllocationsOfGivenRows(t *testing.T) {
	const (
		blocks = `"blocks":[{"instructions":[{"name":"I-0","opcode":"Matmult","engine":"PE","outs":[{"kind":"physical_ap","ap":[[64,128],[1,64]],"dtype":"float32","memref":"p","offset":0}],"perfsim":{"out_elems":0}}]}]`
		allocs = `"allocations":[{"name":"p_set","memorylocations":[{"name":"p","type":"PSUM","addr":0,"dims":[128,256]}]}]`
	)
	for _, body := range []string{allocs + "," + blocks, blocks + "," + allocs} {
		m := mustRead(t, `{"functions":[{"name":"f",`+body+`}]}`)
		if m.Instr.Flags.At(0)&components.FlagDstPSUM == 0 {
			t.Errorf("%s: does not write PSUM", body[:14])
		}
		if m.Instr.OutElems.Len() > 0 && m.Instr.OutElems.At(0) != 0 {
			t.Errorf("%s: %d elements, 0 were given", body[:14], m.Instr.OutElems.At(0))
		}
	}
}
