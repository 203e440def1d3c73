package machine

import (
	"encoding/json"
	"fmt"
)

// builtin returns the embedded description of a name or an alias, nil for
// none.
func builtin(name string) *Machine {
	switch name {
	case "sunda", "inf2":
		name = "trn1"
	case "gen3", "cayman":
		name = "trn2"
	case "core_v4", "mariana":
		name = "trn3"
	}
	text, err := loaded.ReadFile("loaded/" + name + ".json")
	if err != nil {
		return nil
	}
	m := &Machine{}
	if err := json.Unmarshal(text, m); err != nil {
		panic(fmt.Sprintf("embedded machine %s: %v", name, err)) // a test reads all of them
	}
	return m
}
