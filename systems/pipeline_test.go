package systems

import (
	"slices"
	"strings"
	"testing"
)

func TestOrderIsSound(t *testing.T) {
	if err := Order().Check(); err != nil {
		t.Error(err)
	}
}

// Swapping cost and place must be found: the order check is what keeps the
// list honest.
func TestOrderCheckFindsASwap(t *testing.T) {
	s := Order()
	c := slices.IndexFunc(s.Systems, func(x system) bool { return x.Name == "cost" })
	p := slices.IndexFunc(s.Systems, func(x system) bool { return x.Name == "place" })
	s.Systems[c], s.Systems[p] = s.Systems[p], s.Systems[c]
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "before any system wrote it") {
		t.Errorf("error %v", err)
	}
}
