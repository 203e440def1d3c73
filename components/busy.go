package components

// WaitOpcodes returns, by opcode, whether an instruction only waits for a
// semaphore. Waiting is not work: the busy time of an engine leaves it out, as
// the active times of the Neuron profiler do.
func (m *Module) WaitOpcodes() []bool {
	waits := make([]bool, m.NumOpcodes())
	for op := range waits {
		switch m.OpcodeName(Opcode(op)) {
		case "EVENT_SEMAPHORE", "EventSemaphore":
			waits[op] = true
		}
	}
	return waits
}
