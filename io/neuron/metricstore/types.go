package metricstore

import "strings"

// MetricType is one of the 54 metrics of the back end, by its documented
// number.
type MetricType uint8

// The metrics that perfsim computes, by their documented numbers; typeNames has
// all.
const (
	firstDMASize        MetricType = 9 // to lastDMASize: names of ours
	lastDMASize         MetricType = 26
	PostSchedEstLatency MetricType = 42 // nanoseconds, from the performance simulation
)

// The numbers of instructions by engine.
const (
	NumUnassignedInstructions MetricType = iota + 47
	NumPoolInstructions
	NumActivationInstructions
	NumPEInstructions
	NumDMAInstructions
	NumDVEInstructions
	NumSPInstructions
)

// NumTypes is the number of metrics, 54.
const NumTypes = 54

// Prefix begins the type strings of the back end.
const Prefix = "backend::"

// typeNames are the names by number. 9 to 26 are eighteen metrics in bytes whose
// documented names end in DMASize; the rest of those names is not public. These
// names are ours: loads and saves from local and shared DRAM, copies by source
// and destination, and all of them together, each as the total and as the
// average per transfer.
var typeNames = [NumTypes]string{
	"PostUnrollInstructionCount", "FullUnrollInstructionCount", "TotalSplitSbNodesCount",
	"CanSplitSbNodesCount", "VNSplitterDeadNodesCount", "ShrunkNodesCount", "ShrinkDnSavings",
	"mlBPCGSize", "agRGCGSize",
	"TotalLocalLoadDMASize", "AverageLocalLoadDMASize", "TotalSharedLoadDMASize",
	"AverageSharedLoadDMASize", "TotalLocalSaveDMASize", "AverageLocalSaveDMASize",
	"TotalSharedSaveDMASize", "AverageSharedSaveDMASize", "TotalLocalToLocalCopyDMASize",
	"AverageLocalToLocalCopyDMASize", "TotalLocalToSharedCopyDMASize",
	"AverageLocalToSharedCopyDMASize", "TotalSharedToLocalCopyDMASize",
	"AverageSharedToLocalCopyDMASize", "TotalSharedToSharedCopyDMASize",
	"AverageSharedToSharedCopyDMASize", "TotalDMASize", "AverageDMASize",
	"PreGcaDMAAccesses", "PostGcaDMAAccesses", "PsumRenumberLocationsCount",
	"DramRenumberLocationsCount", "DramSpillSpace", "DramAlignedSpillSpace", "DramLocalHWM",
	"DramLocalTotalSize", "DramSharedHWM", "DramSharedTotalSize", "SbRenumberLocationsCount",
	"SplitSelectCount", "TSPtoACTCount", "COPYtoACTCount", "RECIPROCALtoACTCount",
	"PostSchedEstLatency", "TotalAllocatedDramSize", "TotalRuntimeDramSize", "TotalCodeSize",
	"TotalDescriptorSize", "NumUnassignedInstructions", "NumPoolInstructions",
	"NumActivationInstructions", "NumPEInstructions", "NumDMAInstructions",
	"NumDVEInstructions", "NumSPInstructions",
}

// Name returns the bare name, such as "PostSchedEstLatency".
func (t MetricType) Name() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Unknown"
}

// String returns the type as keys and files hold it:
// "backend::PostSchedEstLatency".
func (t MetricType) String() string { return Prefix + t.Name() }

// Ours says that the name is not the documented one but our choice, because the
// documented one is not public.
func (t MetricType) Ours() bool { return t >= firstDMASize && t <= lastDMASize }

// ParseMetricType finds the metric of a name, bare or with its prefix.
func ParseMetricType(s string) (MetricType, bool) {
	s = strings.TrimPrefix(s, Prefix)
	for i, n := range typeNames {
		if n == s {
			return MetricType(i), true
		}
	}
	return 0, false
}

// Aggregation says how values of one metric are put together when the nested
// layout is written. It is a part of the key.
type Aggregation uint8

// The documented aggregations and their numbers.
const (
	Sum     Aggregation = 0
	Average Aggregation = 1
	Custom  Aggregation = 2
	None    Aggregation = 3
)

var aggregationNames = [...]string{"Sum", "Average", "Custom", "None"}

// String returns the name that keys hold.
func (a Aggregation) String() string {
	if int(a) < len(aggregationNames) {
		return aggregationNames[a]
	}
	return "Unknown MetricAggregationType"
}

// parseAggregation finds an aggregation by its exact name.
func parseAggregation(s string) (Aggregation, bool) {
	for i, n := range aggregationNames {
		if n == s {
			return Aggregation(i), true
		}
	}
	return 0, false
}
