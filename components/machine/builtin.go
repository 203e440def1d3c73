package machine

// builtin returns the embedded description of a name or an alias, nil for
// none. TestLoadedIsTheYAML writes each as a function, with -update: YAML takes
// a hundred times as long to read, and JSON longer than a small prediction.
func builtin(name string) *Machine {
	switch name {
	case "trn1", "sunda", "inf2":
		return trn1()
	case "trn2", "gen3", "cayman":
		return trn2()
	case "trn3", "core_v4", "mariana":
		return trn3()
	}
	return nil
}
