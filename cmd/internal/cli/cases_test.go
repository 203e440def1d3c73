package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perfsim/components/datadir"
)

// Small inputs that users sent or that public bug reports describe, each with
// what is right. The files are not part of the project; fixtures of the same
// kinds are in the tests of the readers.
func TestCases(t *testing.T) {
	dir := filepath.Join(datadir.Path(t, "."), "..", "cases")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the cases are absent: %v", err)
	}
	for _, c := range []struct {
		args string // FILE is below the folder
		code int
		want string // a regular expression
	}{
		{"run 01-metadata-before-traceevents.json", 0, `latency +8,000 ns`},
		{"run 01b-long-comment.hlo", 0, `caution +all 4 devices' work on one core`},
		{"profile 02-ops-multi-device.csv", 0, `device 3 +3 ops +kernels 299.85 µs +some op running 300.00 µs`},
		{"profile 03-ops-impossible-kernel.csv", 0, `added up +27.80 µs\n +impossible times +1 op left out`},
		{"run 04-scalar-while.hlo", 0, `body/body .* 10 .*\ncond/cond .* 11 `},
		{"run 05-unpartitioned.hlo", 0, `caution +one of 4 devices[^,]*,.*(?s:.*)34359738368 FLOPs`},
		{"run 06-stale-known-trip-count.hlo", 0, `w states 7 iterations .* its condition gives 4; 7 is used`},
		{"neff info 07-neff-md5-word-order.neff", 0, `agrees with the data`},
		{"neff info 08-neff-underscore-debug.neff", 0, `debug_info_backend_PE.dbg: backend PE, 2 instructions`},
		{"run 10-foreign-dialect-matmul.mlir", 1, `3:11: ttir.matmul: this module is of the MLIR dialect ttir`},
		{"run 11-several-result-names.mlir", 0, `latency`},
		{"run 12-unbounded-dim.hlo", 1, `a.0 \(f32\[\?,512\].*--dim a.0=N`},
		{"run --dim a=128 12-unbounded-dim.hlo", 0, `262144 bytes of parameters`},
		{"whatif 14-jax-summary-lanes.json latency.fusion.1=0.5x", 0, `220.00 µs(?s:.*)160.00 µs +-27.3 %`},
		{"run --trip-count nope=3 15-trip-count-typo.hlo", 1, `no while or while body is called "nope"`},
		{"run 16-ops-table.csv", 1, `an ops table: perfsim profile .*16-ops-table.csv reads it`},
		{"run 16b-utf16.hlo", 0, `latency`},
		{"run 17-sdy-manual-computation.mlir", 0, `262144 of collectives`},
		{"explain 18-cpu-only-annotation.json", 0, `aten::linear .*60.00 µs(?s:.*)Host .*18.00 µs(?s:.*)aten::softmax .*12.00 µs(?s:.*)aten::relu .*10.00 µs`},
		{"run 19-ctrl-cycle.et", 0, `latency +18.00 µs`},
		{"profile 20-multipass-counters.csv", 0, `mean busy share of a core +42.5 %`},
		{"dprint 27-dprint-garbage.bin", 1, `nothing was decoded`},
		{"run 24-num-ops-without-duration.et", 0, `caution +2 of 3 nodes have no duration`},
		{"explain 25-old-kineto-categories.json", 0, `stream 7 gemm`},
		{"run 26-trailing-comma.json", 0, `latency +30.00 µs`},
		{"run 30-nested-device-module.mlir", 1, `MLIR dialects ttcore, ttnn`},
		{"explain 32-device-kernel.json", 0, `GemmKernelA .*50.00 µs(?s:.*)AttentionBwd .*30.00 µs`},
	} {
		args := strings.Fields(c.args)
		for i, a := range args {
			if regexp.MustCompile(`^\d\d`).MatchString(a) {
				args[i] = filepath.Join(dir, a)
			}
		}
		var out, errs bytes.Buffer
		code := Main(args, strings.NewReader(""), &out, &errs)
		if text := out.String() + errs.String(); code != c.code || !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("perfsim %s: exit %d, want %d and %s\n%s", c.args, code, c.code, c.want, text)
		}
	}
	latency := func(name string) string {
		var out, errs bytes.Buffer
		Main([]string{"run", filepath.Join(dir, name)}, strings.NewReader(""), &out, &errs)
		return regexp.MustCompile(`latency +.*`).FindString(out.String() + errs.String())
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"09-channel-id-even.hlo", "09-channel-id-odd.hlo", true},
		{"13-aws-custom-calls.hlo", "13-aws-custom-calls.expected.hlo", true},
		{"23-allreduce.et", "23-reducescatter.et", false},
	} {
		if a, b := latency(c.a), latency(c.b); a == "" || (a == b) != c.same {
			t.Errorf("%s: %s; %s: %s", c.a, a, c.b, b)
		}
	}
}
