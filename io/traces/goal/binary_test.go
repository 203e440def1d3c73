package goal

import (
	"encoding/binary"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/io/internal/readtest"
)

// node is an operation of a binary schedule with the nodes that wait for its
// end and for its start.
type node struct {
	kind      byte
	peer      uint32
	size      uint64
	tag       uint32
	cpu, nic  byte
	end, post []uint32
}

// binaryText writes ranks in the layout that binary.go describes.
func binaryText(ranks ...[]node) []byte {
	le := binary.LittleEndian
	var parts [][]byte
	for _, nodes := range ranks {
		var b, waiting []byte
		b = le.AppendUint32(b, uint32(len(nodes)))
		b = le.AppendUint32(b, 0)
		for _, n := range nodes {
			b = le.AppendUint32(b, 0) // how many it waits for: not read
			b = append(b, n.kind)
			b = le.AppendUint32(b, n.peer)
			b = le.AppendUint64(b, n.size)
			b = le.AppendUint32(b, n.tag)
			b = append(b, n.cpu, n.nic)
			for _, list := range [][]uint32{n.end, n.post} {
				b = le.AppendUint32(b, uint32(len(list)))
				b = le.AppendUint32(b, uint32(len(waiting)/4))
				for _, w := range list {
					waiting = le.AppendUint32(waiting, w)
				}
			}
		}
		parts = append(parts, append(b, waiting...))
	}
	out := le.AppendUint64(nil, cookie)
	out = append(le.AppendUint32(out, uint32(len(ranks))), 9, 9)
	at := uint64(headSize + jumpSize*len(ranks))
	for _, p := range parts {
		out = le.AppendUint64(out, at)
		at += uint64(len(p))
		out = le.AppendUint64(out, at)
	}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func readBytes(b []byte) (*components.Module, error) {
	return readtest.Text(readBinary, "x", string(b))
}

// The schedule of TestExchange, without labels: both forms make one module.
func TestBinaryIsTheText(t *testing.T) {
	m, err := readBytes(binaryText(
		[]node{{kind: binarySend, peer: 1, size: 8, tag: 5, nic: 1, end: []uint32{2}}, {kind: binaryRecv, peer: 1, size: 8, end: []uint32{2}, post: []uint32{0}}, {kind: binaryCalc, size: 100, cpu: 2}},
		[]node{{kind: binaryRecv, size: 8, tag: 5, post: []uint32{1}}, {kind: binarySend, size: 8}, {kind: binaryCalc, size: 7}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `rank 0 recv | Post r0.op1 | 0 |
rank 1 recv | Post r1.op0 | 0 |
rank 1 cpu | calc r1.op2 | 7 |
rank 0 send 1 | CollectiveSend r0.op0 | 1 | O:0
rank 1 send | CollectiveSend r1.op1 | 1 | O:1
rank 1 recv | CollectiveRecv r1.op0 | 1 | F:3 O:1
rank 0 recv | CollectiveRecv r0.op1 | 1 | F:4 O:0
rank 0 cpu 2 | calc r0.op2 | 100 | F:3 F:6
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestBadBinary(t *testing.T) {
	good := binaryText([]node{{kind: binaryCalc, size: 1, end: []uint32{1}}, {kind: binaryCalc, size: 1}})
	if _, err := readBytes(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"cut in the table", good[:20], "byte 8: 1 ranks, whose table does not fit"},
		{"cut behind the table", good[:60], "byte 14: rank 0 lies at bytes 22 to 112 of 52"},
		{"kind", binaryText([]node{{kind: 7}}), "byte 42: operation 0 of rank 0 has the kind 7"},
		{"peer", binaryText([]node{{kind: binarySend, peer: 1}}), "byte 43: operation 0 of rank 0 names rank 1 of 1"},
		{"any target", binaryText([]node{{kind: binarySend, peer: anyBinary}}), "byte 43: operation 0 of rank 0 names rank 4294967295 of 1"},
		{"waits for itself", binaryText([]node{{kind: binaryCalc, end: []uint32{0}}}), "byte 77: operation 0 of 1 of rank 0 waits for operation 0"},
		{"outside", binaryText([]node{{kind: binaryCalc, end: []uint32{4}}}), "byte 77: operation 4 of 1"},
		{"cycle", binaryText([]node{{kind: binaryCalc, end: []uint32{1}}, {kind: binaryCalc, end: []uint32{0}}}), "operation 0 of rank 0: operations wait for one another in a cycle"},
		{"nothing", binaryText(nil), "the schedule has no operations"},
	} {
		_, err := readBytes(c.b)
		if err == nil || !strings.HasPrefix(err.Error(), "x: "+c.want) {
			t.Errorf("%s: error %v, want x: %s", c.name, err, c.want)
		}
	}
}

func TestSniffBinary(t *testing.T) {
	if !sniffBinary(binaryText(nil)) || sniffBinary([]byte("num_ranks 1 rank 0 { }")) || sniffBinary(binary.LittleEndian.AppendUint64(nil, cookie)) {
		t.Error("the sniffer does not tell a binary schedule from others")
	}
}

func FuzzReadBinary(f *testing.F) {
	f.Add(binaryText([]node{{kind: binarySend, peer: 1, size: 8, tag: 5, end: []uint32{1}}, {kind: binaryCalc, size: 3}}, []node{{kind: binaryRecv, size: 8, tag: anyBinary, peer: anyBinary, post: nil}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readBytes(b)
		if err == nil && m.Instr.Len() == 0 {
			t.Error("an empty module")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x:") {
			t.Errorf("error without the file: %v", err)
		}
	})
}
