package xplane

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/io/format"
)

func number(num protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), x)
}

func bytesField(num protowire.Number, parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

func str(num protowire.Number, s string) []byte { return bytesField(num, []byte(s)) }

func name(num protowire.Number, key uint64, s string) []byte {
	return bytesField(num, number(1, key), bytesField(2, number(1, key), str(2, s)))
}

func event(kind, offset, dur uint64, stats ...[]byte) []byte {
	b := append(number(1, kind), append(number(2, offset), number(3, dur)...)...)
	for _, s := range stats {
		b = append(b, s...)
	}
	return bytesField(4, b)
}

func load(t testing.TB, file string, b []byte) (*components.Module, error) {
	t.Helper()
	src, err := format.FromBytes(file, b)
	if err != nil {
		t.Fatal(err)
	}
	return read(context.Background(), src, format.Options{Jobs: 1})
}

func list(m *components.Module) string {
	var b strings.Builder
	for i := range m.Instr.Len() {
		fmt.Fprintf(&b, "%s | %s | %d+%d\n", m.LaneName(m.Instr.Lane.At(i)), m.InstrName(components.InstrID(i)), m.Instr.MeasuredStart.At(i), m.Instr.MeasuredDur.At(i))
	}
	return b.String()
}

// A GPU plane: a call on the host launches a kernel by its correlation.
func gpu() []byte {
	device := bytesField(1, number(1, 3), str(2, "/device:GPU:0"),
		bytesField(3, number(1, 7), str(2, "Stream #7(Kernel)"), number(3, 1000), event(1, 5_000_500, 3_000_000,
			bytesField(4, number(1, 1), number(3, 42)), bytesField(4, number(1, 2), number(7, 3)))),
		name(4, 1, "gemm_kernel"), name(5, 1, "correlation_id"), name(5, 2, "hlo_op"), name(5, 3, "dot.5"))
	host := bytesField(1, number(1, 9), str(2, "/host:CPU"),
		bytesField(3, number(1, 1), str(2, "main"), number(3, 1000), event(1, 0, 2_000_000, bytesField(4, number(1, 1), number(3, 42)))),
		name(4, 1, "cuLaunchKernel"), name(5, 1, "correlation_id"))
	return append(device, host...)
}

func TestStreams(t *testing.T) {
	b := gpu()
	if !Sniff(b) || !Sniff(b[:40]) || Sniff([]byte("HloModule m")) || Sniff(nil) {
		t.Error("sniffing")
	}
	m, err := load(t, "a.xplane.pb", b)
	if err != nil {
		t.Fatal(err)
	}
	const want = `main 1 host | cuLaunchKernel | 0+2000
Stream #7(Kernel) (waits) | wait | 2000+3000
Stream #7(Kernel) | gemm_kernel | 5000+3000
`
	if got := list(m); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	last := m.Instr.Len() - 1
	if op := m.Symbols.String(m.Instr.HLO.At(last)); op != "dot.5" || m.Name != "a" {
		t.Errorf("operator %q of %q", op, m.Name)
	}
	if m.Edges.Counts()[components.Flow] == 0 {
		t.Error("the kernel does not depend on its launch")
	}
}

// A TPU plane: lanes that repeat the operators are no work.
func TestOperators(t *testing.T) {
	line := func(id uint64, s string, events ...[]byte) []byte {
		b := append(number(1, id), str(2, s)...)
		for _, e := range events {
			b = append(b, e...)
		}
		return bytesField(3, b)
	}
	b := bytesField(1, number(1, 3), str(2, "/device:TPU:0"),
		line(1, "Steps", event(1, 0, 9_000_000)), line(2, "XLA Modules", event(2, 0, 9_000_000)),
		line(3, "XLA Ops", event(3, 0, 6_000_000), event(4, 6_000_000, 3_000_000)),
		name(4, 1, "0"), name(4, 2, "jit_f"), bytesField(4, number(1, 3), bytesField(2, number(1, 3), str(2, "%fusion.1 = f32[2] fusion(%a)"), str(4, "fusion.1"))), name(4, 4, "copy.2"))
	m, err := load(t, "t", b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(m), "XLA Ops 3 | fusion.1 | 0+6000\nXLA Ops 3 | copy.2 | 6000+3000\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestDamaged(t *testing.T) {
	b := gpu()
	for n := range len(b) {
		if _, err := load(t, "t", b[:n]); err == nil && n > 0 && n < len(b)-60 {
			continue // cut between planes
		} else if err != nil && !strings.HasPrefix(err.Error(), "t: ") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := load(t, "t", append([]byte{0x0a, 0x05}, "/host"...)); err == nil {
		t.Error("accepted")
	}
}

// A public profile of eight GPUs: its kernels, all with the HLO operator.
func TestRealFile(t *testing.T) {
	file := datadir.Path(t, "xplane", "AMD-AGI__TraceLens__jax_conv_minimal_08_mi300x8.xplane.pb")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !Sniff(b[:4096]) {
		t.Error("sniffing")
	}
	m, err := load(t, file, b)
	if err != nil {
		t.Fatal(err)
	}
	kernels, named := 0, 0
	for i := range m.Instr.Len() {
		if strings.Contains(m.LaneName(m.Instr.Lane.At(i)), "Stream #") && m.OpcodeName(m.Instr.Opcode.At(i)) != "Wait" {
			if kernels++; m.Instr.HLO.Get(i) != 0 {
				named++
			}
		}
	}
	// 9 + 9 + 34 + 8 on the first device, 25 on each of the seven others.
	if kernels != 60+7*25 || named < 7*25 {
		t.Errorf("%d kernels, %d with an operator", kernels, named)
	}
}

// FuzzRead: no input makes the reader panic.
func FuzzRead(f *testing.F) {
	f.Add(gpu())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := load(t, "t", b); err == nil {
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
