package lower_test

import (
	"context"
	"errors"
	"testing"

	"perfsim/components/opgraph"
	"perfsim/systems/lower"
)

// Absurd sizes end with an error or a compressed module, not with a hang or a
// full memory.
func TestLimits(t *testing.T) {
	mach := loadMachine(t, "trn2")
	huge := int64(1) << 40
	for name, g := range map[string]*opgraph.Graph{
		"contracted": matmul(1, huge, 1, opgraph.ElemBF16),
		"rows":       matmul(huge, 128, 128, opgraph.ElemBF16),
		"columns":    matmul(128, 128, huge, opgraph.ElemBF16),
		"square":     attention(1<<30, 128, opgraph.ElemF32),
	} {
		for _, compress := range []bool{true, false} {
			opt := lower.DefaultOptions()
			opt.Compress = compress
			opt.MaxInstructions = 100_000
			res, err := lower.Lower(context.Background(), g, mach, opt)
			var many lower.TooManyError
			switch {
			case errors.As(err, &many):
				if many.Max != 100_000 {
					t.Errorf("%s: the limit is %d in the error", name, many.Max)
				}
			case err != nil:
				t.Errorf("%s, compress %v: %v", name, compress, err)
			default:
				if !compress {
					t.Errorf("%s: %d instructions stand for a huge graph", name, res.Module.Instr.Len())
				}
				if err := res.Report.Conserved(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := lower.Lower(ctx, matmul(4096, 4096, 4096, opgraph.ElemBF16), mach, lower.DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled lowering ends with %v", err)
	}
}
