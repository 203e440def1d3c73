package lower

import "perfsim/components/machine"

// array has the properties of a machine that the lowering uses: the sizes that
// tiles are cut to. Whatever the description does not say has the Neuron core's
// value.
type array struct {
	parts     int64 // partitions of SBUF, rows of the matmul array
	statM     int64 // columns of the stationary tensor
	movN      int64 // columns of the moving tensor: a PSUM bank of 32-bit sums
	sbuf      int64 // bytes per partition
	budget    int64 // of them, what kernels may use
	banks     int   // PSUM banks; 0: sums live in SBUF
	bankBytes int64
	tile      int64 // bytes per partition of a streamed tile, at most
}

// Limits of what is ours.
const (
	tileBytes   = 8 << 10 // of a streamed tile per partition: DMA is at full rate from 4 KiB on
	replicated  = 32 << 10
	chunkK      = 8 // blocks of the contracted dimension in one transfer
	copyBytes   = 8 << 20
	hbmTiles    = 1024
	hbmTile     = 1 << 20 // of device memory for which accesses are listed together, at least
	softBanks   = 8       // tiles of SBUF that stand for the banks of a machine without PSUM
	shareOfSBUF = 4       // a value stays on chip up to this part of SBUF
)

func arrayOf(m *machine.Machine) array {
	a := array{parts: int64(m.Memory.Partitions), sbuf: int64(m.Memory.SBUFBytes), banks: m.Memory.PSUMBanks, bankBytes: int64(m.Memory.PSUMBankBytes), tile: tileBytes}
	if a.parts < 1 || a.parts > 1<<15 {
		a.parts = 128
	}
	if a.sbuf < 4<<10 {
		a.sbuf = 192 << 10
	}
	if a.bankBytes < 4 {
		a.bankBytes = 2048
	}
	a.budget = a.sbuf
	if a.banks == 0 {
		a.budget -= min(softBanks*a.bankBytes, a.sbuf/2)
	}
	a.statM, a.movN = a.parts, a.bankBytes/4
	for a.tile*16 > a.budget && a.tile > 256 {
		a.tile /= 2
	}
	return a
}
