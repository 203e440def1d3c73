package explain

import (
	"fmt"
	"strings"

	"perfsim/components"
)

// FindBlock returns the row of a top-level block by BLOCK or FUNCTION/BLOCK,
// -1 for "".
func FindBlock(m *components.Module, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	found := -1
	var known []string
	for _, b := range m.TopBlocks() {
		full := m.FunctionName(int(m.Blocks.Function.At(b))) + "/" + m.BlockName(b)
		if full == name {
			return b, nil
		}
		if m.BlockName(b) == name {
			if found >= 0 {
				return 0, fmt.Errorf("several blocks are called %q; write FUNCTION/BLOCK", name)
			}
			found = b
		}
		if len(known) < 8 {
			known = append(known, full)
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("no top-level block is called %q (%s)", name, strings.Join(known, ", "))
	}
	return found, nil
}
