// Package proptest runs property tests with a pinned seed, so that a test
// that passes today passes tomorrow.
package proptest

import (
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// SeedVariable names the environment variable with the seed of every property
// test. CI sets it to a random number, which it prints.
const SeedVariable = "PERFSIM_SEED"

var pin = sync.OnceValue(func() error {
	f := flag.Lookup("rapid.seed")
	if f == nil || f.Value.String() != "0" {
		return nil // -rapid.seed on the command line wins
	}
	seed := os.Getenv(SeedVariable)
	if seed == "" {
		seed = "1"
	}
	return flag.Set("rapid.seed", seed)
})

// Check runs property on random values, as rapid.Check does. The seed is 1,
// the value of PERFSIM_SEED, or that of the flag -rapid.seed.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if err := pin(); err != nil {
		t.Fatalf("%s: %v", SeedVariable, err)
	}
	rapid.Check(t, property)
}

// LongVariable names the environment variable that asks for the long form of
// the tests, as CI sets it.
const LongVariable = "PERFSIM_LONG"

// Long reports whether the long form of the tests is asked for.
func Long() bool { return os.Getenv(LongVariable) != "" }

// Cases returns how many random cases a test tries: long in the long form, a
// twentieth of it otherwise, and a hundredth with -short.
func Cases(long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return max(1, long/100)
	}
	return max(1, long/20)
}
