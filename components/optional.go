package components

import (
	"math"
	"strconv"
)

// OptionalNS is a time in ns that may be absent: JSON has null then.
type OptionalNS uint64

// AbsentNS is the absent time.
const AbsentNS OptionalNS = math.MaxUint64

// Known reports whether there is a time.
func (t OptionalNS) Known() bool { return t != AbsentNS }

// Or returns the time, or other where it is absent.
func (t OptionalNS) Or(other uint64) uint64 {
	if t.Known() {
		return uint64(t)
	}
	return other
}

// MarshalJSON writes the number or null.
func (t OptionalNS) MarshalJSON() ([]byte, error) {
	if !t.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendUint(nil, uint64(t), 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *OptionalNS) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = AbsentNS
		return nil
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	*t = OptionalNS(v)
	return err
}
