package goal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/timeline"
)

// BinaryImporter reads the binary schedules that LogGOPSim's txt2bin writes,
// which ATLAHS takes too.
var BinaryImporter = format.Importer{
	Name:   "goalbin",
	Sniff:  sniffBinary,
	Module: readBinary,
}

// The layout: the cookie; then, counted from behind it, the number of ranks,
// the largest cpu and nic, where each rank's part starts and ends, and the
// parts. A part has the number of nodes and of those that wait for none, the
// latter, the nodes, and the numbers of the nodes that wait for a node, which
// the nodes point into. All are little-endian and unaligned.
const (
	cookie       = 4223
	cookieSize   = 8
	headSize     = 6 // ranks, cpu, nic
	jumpSize     = 16
	partHeadSize = 8
	nodeSize     = 39
)

// Kinds of nodes.
const (
	binarySend = 1
	binaryRecv = 2
	binaryCalc = 3
)

// anyBinary is any source or any tag.
const anyBinary = math.MaxUint32

func sniffBinary(head []byte) bool {
	return len(head) >= cookieSize+headSize && binary.LittleEndian.Uint64(head) == cookie &&
		binary.LittleEndian.Uint32(head[cookieSize:]) > 0
}

// maxBinary bounds a file: the dependencies of a module are numbered with 32
// bits.
const maxBinary = 1 << 38

func readBinary(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	s := newSchedule(moduleName(src.Name, ".bin"))
	b, err := src.ReadAll(maxBinary)
	if err != nil {
		return nil, err
	}
	if err := s.decode(ctx, b); err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return finish(src.Name, s, nil)
}

// decode reads a whole binary file.
func (s *schedule) decode(ctx context.Context, b []byte) error {
	if !sniffBinary(b) {
		return errors.New("byte 0: not the start of a binary schedule")
	}
	b = b[cookieSize:]
	ranks := int64(binary.LittleEndian.Uint32(b))
	if ranks > maxRanks || headSize+ranks*jumpSize > int64(len(b)) {
		return fmt.Errorf("byte %d: %d ranks, whose table does not fit the file of %d bytes", cookieSize, ranks, cookieSize+len(b))
	}
	s.ranks = int(ranks)
	for r := range int(ranks) {
		at := headSize + r*jumpSize
		from, to := binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])
		if from < uint64(headSize+ranks*jumpSize) || to < from || to > uint64(len(b)) || to-from < partHeadSize {
			return fmt.Errorf("byte %d: rank %d lies at bytes %d to %d of %d", cookieSize+at, r, from, to, len(b))
		}
		if err := s.decodeRank(ctx, int32(r), b[from:to], cookieSize+int64(from)); err != nil {
			return err
		}
	}
	return nil
}

// decodeRank reads the part of a rank, which starts at byte base of the file.
func (s *schedule) decodeRank(ctx context.Context, rank int32, b []byte, base int64) error {
	le := binary.LittleEndian
	nodes, roots := int64(le.Uint32(b)), int64(le.Uint32(b[4:]))
	first := partHeadSize + roots*4
	if roots > nodes || first+nodes*nodeSize > int64(len(b)) {
		return fmt.Errorf("byte %d: rank %d has %d operations, %d of which wait for none, in %d bytes", base, rank, nodes, roots, len(b))
	}
	list := b[first:]
	waiting := list[nodes*nodeSize:] // numbers of nodes
	most := int64(len(waiting) / 4)
	op := len(s.b.Rows)
	if err := timeline.Room(ctx, int(nodes), int(most)); err != nil {
		return fmt.Errorf("byte %d: %w", base, err)
	}
	s.b.Reserve(op+int(nodes), s.b.Deps.Len()+int(most))
	s.starts = append(s.starts, rankStart{op, rank})
	edges := int64(0)
	name := append(strconv.AppendInt([]byte("r"), int64(rank), 10), ".op"...)
	for i := range nodes {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		n := list[i*nodeSize:][:nodeSize]
		at := base + first + i*nodeSize
		kind, peer, size, tag := n[4], le.Uint32(n[5:]), le.Uint64(n[9:]), le.Uint32(n[17:])
		if size > math.MaxInt64/4 {
			return fmt.Errorf("byte %d: operation %d of rank %d has the size %d", at+9, i, rank, size)
		}
		opcode, unit := s.calc, uint16(n[21])
		switch kind {
		case binaryCalc:
		case binarySend:
			opcode, unit = components.OpcodeCollectiveSend, uint16(n[22])
		case binaryRecv:
			opcode, unit = components.OpcodeCollectiveRecv, uint16(n[22])
		default:
			return fmt.Errorf("byte %d: operation %d of rank %d has the kind %d, not 1 (send), 2 (receive) or 3 (calc)", at+4, i, rank, kind)
		}
		if kind != binaryCalc {
			x := message{op: uint32(op) + uint32(i), rank: rank, peer: int32(peer), tag: int64(tag)}
			if tag == anyBinary {
				x.tag = wildcard
			}
			switch {
			case peer == anyBinary && kind == binaryRecv:
				x.peer = wildcard
			case int64(peer) >= int64(s.ranks):
				return fmt.Errorf("byte %d: operation %d of rank %d names rank %d of %d", at+5, i, rank, peer, s.ranks)
			}
			s.messages = append(s.messages, x)
		}
		r, err := s.add(opcode, rank, unit, size)
		if err != nil {
			return fmt.Errorf("byte %d: %w", at, err)
		}
		r.Name = s.b.M.Symbols.AddUnique(strconv.AppendInt(name, i, 10))
		for half, dep := range []components.EdgeKind{components.Flow, components.Ordered} {
			count, from := int64(le.Uint32(n[23+8*half:])), int64(le.Uint32(n[27+8*half:]))
			if count == 0 {
				continue
			}
			if edges += count; from+count > most || edges > most {
				return fmt.Errorf("byte %d: %d operations wait for operation %d of rank %d, from place %d of %d", at+23+8*int64(half), count, i, rank, from, most)
			}
			for k := range count {
				w := int64(le.Uint32(waiting[(from+k)*4:]))
				if w >= nodes || w == i {
					return fmt.Errorf("byte %d: operation %d of %d of rank %d waits for operation %d", base+first+nodes*nodeSize+(from+k)*4, w, nodes, rank, i)
				}
				s.b.Depend(op+int(w), op+int(i), dep)
			}
		}
	}
	return nil
}
