package chakra

import "strings"

// collective is the kind of a collective: CollectiveCommType plus 1. 0 is a
// kind that the input does not state.
type collective uint64

// The collectives in the order of CollectiveCommType.
const (
	allReduce collective = iota + 1
	reduce
	allGather
	gather
	scatter
	broadcast
	allToAll
	reduceScatter
	reduceScatterBlock
	barrier
)

var collectiveNames = [...]string{"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
	"REDUCE_SCATTER_BLOCK", "BARRIER"}

func (c collective) unset() bool { return c == 0 }

// numbered returns the kind with a number of CollectiveCommType.
func numbered(n uint64) collective { return collective(min(n, 1<<32) + 1) }

// String returns the name in CollectiveCommType, "" for a kind that is not
// known.
func (c collective) String() string {
	if c == 0 || int(c) > len(collectiveNames) {
		return ""
	}
	return collectiveNames[c-1]
}

// collectiveOf finds the kind in a text: the name of a comm_type, of an operator
// ("nccl:_all_gather_base") or of a kernel ("ncclDevKernel_ReduceScatter_Sum").
// Of names that contain one another the longest counts.
func collectiveOf(text string) (best collective) {
	squeeze := strings.NewReplacer("_", "", "-", "", " ", "")
	text = strings.ToUpper(squeeze.Replace(text))
	length := 0
	for i, name := range collectiveNames {
		if name = squeeze.Replace(name); len(name) > length && strings.Contains(text, name) {
			best, length = numbered(uint64(i)), len(name)
		}
	}
	return best
}

// sent returns what a device sends for a collective of size bytes, in the limit
// of many devices: an all-reduce is a reduce-scatter and an all-gather, so it
// sends twice; a barrier sends nothing.
func (c collective) sent(size uint64) uint64 {
	switch c {
	case allReduce:
		return 2 * min(size, maxSize/2)
	case barrier:
		return 0
	}
	return size
}
