package whatif

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// number sets a number of the machine description whose path leads through
// structs only. Where the path leads elsewhere, or the field cannot take the
// value, it does nothing and reports false.
func (p *plan) number(s Setting) (done bool, err error) {
	v, ok := tagged(reflect.ValueOf(p.w.Machine).Elem(), s.Name)
	if !ok {
		return false, nil
	}
	var set func(float64)
	was := 0.0
	fits := func(float64) bool { return true }
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		was = float64(v.Int())
		fits = func(x float64) bool { return math.Abs(x) < 1<<53 && !v.OverflowInt(int64(x)) }
		set = func(x float64) { v.SetInt(int64(x)) }
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		was = float64(v.Uint())
		fits = func(x float64) bool { return x >= 0 && x < 1<<53 && !v.OverflowUint(uint64(x)) }
		set = func(x float64) { v.SetUint(uint64(x)) }
	case reflect.Float64:
		was, set = v.Float(), v.SetFloat
	default:
		return false, nil
	}
	x, err := s.on(was)
	if err != nil {
		return true, err
	}
	// As a description has it: six digits where it is no whole number.
	if was != math.Trunc(was) || x != math.Trunc(x) {
		if x, err = strconv.ParseFloat(trim(x), 64); err != nil {
			return false, nil
		}
	}
	if v.Kind() != reflect.Float64 {
		x = math.Trunc(x)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) || !fits(x) {
		return false, nil
	}
	set(x)
	if err := p.w.Machine.Check(); err != nil {
		return true, fmt.Errorf("machine with %s: %w", s.Name, err)
	}
	return true, nil
}

// tagged returns the field of a struct that a path of YAML names leads to.
// Fields that a description leaves out where they are zero do not count then.
func tagged(v reflect.Value, path string) (reflect.Value, bool) {
	for {
		if v.Kind() != reflect.Struct {
			return v, false
		}
		head, rest, more := strings.Cut(path, ".")
		found := false
		for i := range v.NumField() {
			name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if name == head && !(option == "omitempty" && v.Field(i).IsZero()) {
				v, found = v.Field(i), true
				break
			}
		}
		if !found || !more {
			return v, found
		}
		path = rest
	}
}
