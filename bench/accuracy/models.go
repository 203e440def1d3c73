package accuracy

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"perfsim/bench/modelrun"
	"perfsim/components"
	"perfsim/systems/lower"
)

const (
	classAWS         = "models on one NeuronCore"
	classTenstorrent = "models on Tensix grids, device"
	classEndToEnd    = "models on Tensix grids, end to end"
)

// built are the names that measurements have, with family and configuration of
// the models that perfsim builds.
var built = map[string][2]string{
	"distilbert-base": {"distilbert", "base"}, "vgg16": {"vgg16", "224"},
	"bert-base-uncased": {"bert", "base"}, "bert-base": {"bert", "base"}, "bert-large": {"bert", "large"}, "resnet50": {"resnet", "resnet50"},
	"resnet18": {"resnet", "resnet18"}, "vit": {"vit", "base"}, "mobilenetv2": {"mobilenetv2", "224"}, "mobilenetv1": {"mobilenetv1", "224"},
}

func awsJobs(f *file, _ []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		mach := "trn1" // inf2 has the same core
		it := Item{Class: classAWS, Name: row["model"] + ", batch " + row["batch"] + ", " + row["instance"], Machine: mach, Quantity: "device latency, published",
			Measured: number(row["per_core_ms"]) * 1e6, Source: fmt.Sprintf("%s, line %d", f.path, n+2), Origin: row["source"]}
		if !(it.Measured > 0) {
			it.Measured, it.Reason = 0, "no latency of one core is published"
		}
		out = append(out, modelJob(it, row["model"], row["batch"], mach, "Fp16_b", "", opt))
	}
	return out, nil
}

func tenstorrentJobs(f *file, _ []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		chip, board, _ := strings.Cut(row["chip"], " ")
		mach := chip
		if board == "n150" {
			mach = "wormhole_b0"
		}
		rate := number(row["samples_per_s_device"])
		batch := number(row["batch"])
		it := Item{Class: classTenstorrent, Name: row["model"] + ", batch " + row["batch"] + ", " + row["chip"], Machine: mach, Quantity: "device time of a batch",
			Measured: batch / rate * 1e9, Source: fmt.Sprintf("%s, line %d", f.path, n+2)}
		if !(it.Measured > 0) {
			it.Measured, it.Reason = 0, "no device rate is published"
		}
		out = append(out, modelJob(it, row["model"], row["batch"], mach, "Bfp8_b", "LoFi", opt))
		rate = number(row["samples_per_s_end_to_end"])
		it.Class, it.Quantity, it.Reason, it.Measured = classEndToEnd, "time of a batch with the host", "", batch/rate*1e9
		if !(it.Measured > 0) || math.IsInf(it.Measured, 0) {
			it.Measured, it.Reason = 0, "no end-to-end rate is published"
		}
		dataFormat, fidelity := "Bfp8_b", "LoFi"
		if strings.Contains(row["source"], "HiFi3") {
			dataFormat, fidelity = "Fp16_b", "HiFi3"
		}
		j := modelJob(it, row["model"], row["batch"], mach, dataFormat, fidelity, opt)
		out = append(out, j)
	}
	return out, nil
}

func modelJob(it Item, model, batch, mach, dataFormat, fidelity string, opt *Options) job {
	name, ok := built[model]
	n, err := strconv.Atoi(batch)
	if it.Reason == "" && (!ok || err != nil) {
		it.Reason = "perfsim builds no model of this name"
	}
	return job{it, func(ctx context.Context, i *Item) error {
		o, err := modelrun.Run(ctx, modelrun.Options{Model: name[0], Config: name[1], Task: "na", Machine: mach, Microbatch: n, LoopCount: 1, Repeats: 1,
			Jobs: max(opt.Jobs, 1), Format: dataFormat, Fidelity: fidelity, Lower: lower.DefaultOptions(), Cost: components.Calibrated})
		if err != nil {
			return err
		}
		ns := o.BatchNS
		if i.Class == classEndToEnd {
			ns += o.HostNS
		}
		i.set(ns, 0, 0)
		return nil
	}}
}
