package fit

import (
	"context"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
	"perfsim/systems/compare"
)

// Score is how well one profile was predicted. Errors are percentages with
// sign, start errors percentages of the measured kernel time.
type Score struct {
	Profile string `json:"profile"` // the profile
	// Kernel is the time from the start of the first instruction of the
	// kernel's own work to the end of its last: the compiler's instructions
	// but for the mode switch that opens them.
	KernelNS  float64            `json:"kernel_ns"`
	Predicted float64            `json:"predicted_ns"`
	KernelErr float64            `json:"kernel_error_percent"`    // predicted over measured time of the kernel, less 1
	Whole     float64            `json:"whole_error_percent"`     // predicted over measured time of the whole profile, less 1
	Busy      map[string]float64 `json:"busy_error_percent"`      // busy time of the engines, predicted over measured, less 1
	StartP50  float64            `json:"start_error_p50_percent"` // median error of the starts over the kernel's time
	StartP90  float64            `json:"start_error_p90_percent"` // 90th percentile of these errors
	StartMax  float64            `json:"start_error_max_percent"` // largest of these errors
	// LastErr is the error of the start of the last data-path instruction,
	// counted from the kernel's start.
	LastErr float64 `json:"last_compute_error_percent"`
}

// Judge predicts module m on mach and compares with its measurements.
func Judge(ctx context.Context, m *components.Module, mach *machine.Machine, opt calibrated.Options) (Score, error) {
	p, err := calibrated.Predict(ctx, m, mach, opt)
	if err != nil {
		return Score{}, err
	}
	return judge(m, compare.FromTimes(m, "prediction", p.Start, p.Dur)), nil
}

func judge(m *components.Module, predicted *compare.Side) Score {
	measured := compare.Measured(m)
	r := compare.Compare(measured, predicted, compare.Options{})
	s := Score{Profile: m.Name, KernelNS: float64(r.Kernel.A), Predicted: float64(r.Kernel.B), KernelErr: r.Kernel.Percent, Whole: r.Whole.Percent,
		Busy: map[string]float64{}, StartP50: r.Start.P50Percent, StartP90: r.Start.P90Percent, StartMax: r.Start.MaxPercent}
	s.LastErr = lastCompute(m, predicted)
	busy := compare.KernelBusy(predicted)
	for e, ns := range compare.KernelBusy(measured) {
		if ns > 0 {
			s.Busy[e] = 100 * (busy[e] - ns) / ns
		}
	}
	return s
}

// lastCompute compares the start of the data-path instruction that starts
// last in the measurement, counted from the kernel's start, in per cent.
func lastCompute(m *components.Module, predicted *compare.Side) float64 {
	measured := compare.Measured(m)
	last, a, b := -1, math.Inf(1), math.Inf(1)
	for i := range m.Instr.Len() {
		if !compare.Kernel(m, i) {
			continue
		}
		a, b = min(a, measured.Start[i]), min(b, predicted.Start[i])
		f := m.Instr.Flags.At(i)
		if f&(components.FlagSequencer|components.FlagHWDGE|components.FlagSWDGE) == 0 && (last < 0 || measured.Start[i] > measured.Start[last]) {
			last = i
		}
	}
	if last < 0 || measured.Start[last] <= a {
		return 0
	}
	was := measured.Start[last] - a
	return 100 * (predicted.Start[last] - b - was) / was
}

// Summary is the scores of several profiles in a few figures.
type Summary struct {
	KernelMedian float64 `json:"kernel_error_median_percent"`      // absolute
	KernelWorst  float64 `json:"kernel_error_worst_percent"`       // largest error of a kernel's time
	BusyMedian   float64 `json:"busy_error_median_percent"`        // median error of the busy times
	StartP90     float64 `json:"start_error_p90_median_percent"`   // median of the profiles' 90th percentiles
	StartP90Max  float64 `json:"start_error_p90_worst_percent"`    // largest 90th percentile of the errors of starts
	LastWorst    float64 `json:"last_compute_error_worst_percent"` // absolute
}

// Summarize adds scores up.
func Summarize(scores []Score) Summary {
	var kernel, busy, p90, last []float64
	for _, s := range scores {
		kernel = append(kernel, math.Abs(s.KernelErr))
		p90 = append(p90, s.StartP90)
		last = append(last, math.Abs(s.LastErr))
		for _, b := range s.Busy {
			busy = append(busy, math.Abs(b))
		}
	}
	if len(scores) == 0 {
		return Summary{}
	}
	return Summary{KernelMedian: median(slices.Clone(kernel)), KernelWorst: slices.Max(kernel), BusyMedian: median(busy),
		StartP90: median(slices.Clone(p90)), StartP90Max: slices.Max(p90), LastWorst: slices.Max(last)}
}
