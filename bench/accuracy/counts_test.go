package accuracy

import (
	"os/exec"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/io/format"
	"perfsim/systems"
)

// TestCountsByHand counts what four benchmark kernels ask for: products of
// 128 × 128 × 512 or fewer, transposes of tiles, and bytes of device memory.
// The counters of published profiles of bmm, silu and rope on trn1 have the
// same bytes once spills are taken off.
func TestCountsByHand(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 records kernels, and there is none")
	}
	const identity = 128 * 128 * 4
	for _, c := range []struct {
		kernel               string
		products, transposes int
		read, written        uint64
	}{
		// 16 batches of 32 × 8 tiles; each row tile is transposed once, not once
		// for each of four blocks of columns.
		{"bmm_B16_M4096_K64_N4096_0.py", 16 * 32 * 8, 16 * 32, 2*16*4096*64*4 + identity, 16 * 4096 * 4096 * 4},
		// 32 × 24 tiles of 40 products; the left side is read and transposed once.
		{"matmul_M4096_N12288_K5120_0.py", 32 * 24 * 40, 32 * 40, 4096*5120*4 + 5120*12288*4 + identity, 4096 * 12288 * 4},
		{"silu_M4096_N7168_0.py", 0, 0, 4096 * 7168 * 4, 4096 * 7168 * 4},
		// 64 heads of 128 × 4096; sine and cosine have half the rows.
		{"rope_single_freq_apply_B1_H64_N4096_D128_0.py", 0, 0, 2 * 64 * 4096 * 128 * 4, 64 * 4096 * 128 * 4},
	} {
		path := datadir.Path(t, "nki", "nkibench", "kernels", c.kernel)
		res, err := systems.Simulate(ctx, kernelRequest(&Options{}, path, "trn2", format.KernelCall{}, false))
		if err != nil {
			t.Fatal(err)
		}
		m := res.World.Module
		products, transposes := 0, 0
		var spilled, respilled uint64 // what the source does not ask for
		for i, op := range m.Instr.Opcode.Slice() {
			switch {
			case !m.Instr.Flags.At(i).Has(components.FlagSpill):
			case m.Instr.Flags.At(i).Has(components.FlagDstDRAM):
				spilled += m.Instr.DMABytes.Get(i)
			default:
				respilled += m.Instr.DMABytes.Get(i)
			}
			switch {
			case !op.IsMatmul():
			case m.Instr.Flags.At(i).Has(components.FlagTranspose):
				transposes++
			default:
				products++
			}
		}
		w := res.Report().Work
		if products != c.products || transposes != c.transposes || *w.HBMRead-respilled != c.read || *w.HBMWritten-spilled != c.written {
			t.Errorf("%s: %d products, %d transposes, %d bytes read, %d written; want %d, %d, %d, %d", c.kernel, products, transposes,
				*w.HBMRead-respilled, *w.HBMWritten-spilled, c.products, c.transposes, c.read, c.written)
		}
	}
}
