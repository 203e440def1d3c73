package neff

import (
	"strconv"

	"perfsim/components"
)

// Formula returns the name that the documented formula of the compiler's
// library gives: tag, engine and counter without anything between them, then
// a dot and the extension. String returns the names that real files have.
func (n DebugName) Formula() string {
	s := n.Layer.String()
	if n.Engine != components.Unassigned {
		s += n.Engine.String()
	}
	if n.Counter >= 0 {
		s += strconv.Itoa(n.Counter)
	}
	if n.Ext != "" {
		s += "." + n.Ext
	}
	return s
}
